"""Measures the cost of a training step by batch size and features, and memory in a long training."""

import statistics
import sys
from typing import Any

from benchmarks import charts, speed_table
from benchmarks.speed_runs import Pythons, run_contestant
from benchmarks.speed_works import FLOOR, OURS, REFERENCE, Contestant, Work

KERAS = "Keras fit, jit_compile, steps_per_execution=20"
CONTESTANTS = (
    Contestant(OURS, "ours"),
    Contestant(REFERENCE, "reference"),
    Contestant(KERAS, "keras", {"steps_per_execution": 20, "jit_compile": True}),
    Contestant(FLOOR, "floor"),
)
BATCH_SIZES = (32, 128, 512, 2048, 8192)
FEATURES = (10, 100, 1000, 10_000)
_OF_BATCHES, _BATCH_OF_FEATURES = 20, 128
SIZES = {
    "batch": [(size, _OF_BATCHES) for size in BATCH_SIZES],
    "features": [(_BATCH_OF_FEATURES, number) for number in FEATURES],
}
_WORK = Work("growth", "DNN on a vector", "vector", "step", CONTESTANTS, {})
_MEBIBYTE = 2**20


def measure(rounds: int, pythons: Pythons) -> list[dict[str, Any]]:
    """Returns the seconds of a step by contestant and size, in turn."""
    measurements = []
    for number in range(rounds):
        for plot, sizes in SIZES.items():
            for size in sizes:
                checks = {}
                for contestant in CONTESTANTS:
                    print(f"{plot} {size} {number + 1}/{rounds} {contestant.name}", file=sys.stderr)
                    options = ["--size", f"{size[0]},{size[1]}", *["--check"] * (number == 0)]
                    measured = run_contestant("vector", contestant, pythons, *options)
                    checks[contestant.name] = measured.pop("check", {})
                    measurements.append(
                        {"plot": plot, "size": size, "contestant": contestant.name, **measured}
                    )
                differences = speed_table.differences(_WORK, checks)
                if differences:
                    raise SystemExit(f"{plot} {size}: not the same work. " + "; ".join(differences))
    return measurements


def memory(work: str, count: int, pythons: Pythons) -> dict[str, Any]:
    """Returns the "steps" and "resident_bytes" of each Estimator API by its name."""
    return {
        contestant.name: run_contestant(work, contestant, pythons, "--count", str(count))
        for contestant in CONTESTANTS[:2]
    }


def figures(measured: list[dict[str, Any]], by_processor: bool) -> dict[str, str]:
    """Returns the SVG by file name: steps a second over the batch size, and over the features."""
    seconds = "processor_secs" if by_processor else "secs"
    unit = "steps a second of processor time" if by_processor else "steps a second"
    texts = {
        "batch": (f"{_OF_BATCHES} features, batches of 32 to 8,192", "batch size", 0),
        "features": (f"10 to 10,000 features, batch size {_BATCH_OF_FEATURES}", "features", 1),
    }
    svgs = {}
    for plot, (title, label, axis) in texts.items():
        series = {}
        for contestant in CONTESTANTS:
            series[contestant.name] = [
                (size[axis], 1 / statistics.median(values))
                for size in SIZES[plot]
                if (
                    values := [
                        run[seconds]
                        for run in measured
                        if (run["plot"], tuple(run["size"]), run["contestant"])
                        == (plot, size, contestant.name)
                    ]
                )
            ]
        drawn = {name: points for name, points in series.items() if points}
        if drawn:
            svgs[f"speed-{plot}.svg"] = charts.lines(title, (label, unit), drawn)
    return svgs


def memory_figure(measured: dict[str, Any], title: str, label: str) -> str:
    """Returns the SVG of memory over `label`."""
    series = {
        name: [
            (step, size / _MEBIBYTE)
            for step, size in zip(curve["steps"], curve["resident_bytes"], strict=True)
        ]
        for name, curve in measured.items()
    }
    return charts.lines(title, (label, "resident memory, MiB"), series, log_x=False)


def memory_growth(steps: list[int], resident_bytes: list[int]) -> float:
    """Returns the growth of the memory per step, in bytes: the slope of a least squares line.

    The first tenth of the measurements is left out; TensorFlow fills its pools until then.
    """
    first = len(steps) // 10
    return statistics.linear_regression(steps[first:], resident_bytes[first:]).slope


def memory_lines(results: dict[str, Any]) -> list[str]:
    """Returns the growth of memory, a line for each training and for each series of evaluations."""
    lines = []
    for key, unit in (("memory", "step"), ("memory_evaluate", "call of evaluate")):
        for name, curve in results.get(key, {}).get("measured", {}).items():
            growth = memory_growth(curve["steps"], curve["resident_bytes"])
            first, last = (curve["resident_bytes"][index] / _MEBIBYTE for index in (0, -1))
            lines.append(
                f"Memory of {name}: {first:.0f} MiB at first, {last:.0f} MiB after "
                f"{curve['steps'][-1]:,}; {growth:+,.1f} bytes a {unit}."
            )
    return lines
