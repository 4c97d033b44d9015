"""From a CSV to a pushed model: our nine components compared with stock TFX's nine.

make bench-pipeline BENCH="--rows 15000 300000 --rounds 3"
make bench-pipeline BENCH="--columns 100 1000 --rounds 1"
python benchmarks/pipeline_speed.py [--data CSV] [--rows N ...] [--columns N ...] [--rounds N] [--docs]

The option `--rows` measures taxi trips: the same data, `preprocessing_fn`, features, layers, batch size,
steps, metrics and slices on both sides; a Keras model with a `run_fn` there, an Estimator with a `trainer_fn`
here. With `--columns`, a table of numbers with 1,000 rows: z-scores and logistic regression on both sides, a
module there, the generic model here. Neither side has Transform compute statistics.

The sides run one after the other, each in its own process. The order of the sides alternates from round to
round, since the second finds a warm page cache. Component times are from our steps, and from stock TFX's
executions in ML Metadata; the rest of the process is imports and the like. The ServingCheck is ours alone.
Each size has a table with the medians of the rounds; the ratio of each round is printed below. Above 1x, we
are faster. On a busy machine, compare the processor's time. A side that takes longer than `--limit-secs` is
stopped, and not run with more rows or columns. `--docs` writes the tables' figures as charts into
docs/figures.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import charts, tables, wide_table  # noqa: E402  (the script may be started from anywhere)

COMPONENTS = (
    "CsvExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "Transform",
    "Resolver",
    "Trainer",
    "Evaluator",
    "Pusher",
)
_MEBIBYTE = 1 << 20
_WIDE_ROWS = 1_000
_LEAST_SECS = 0.05  # of a ratio


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One side of the comparison."""

    process_secs: float  # Wall time of the whole process
    cpu_secs: float  # Processor time of the process and of those that it started
    component_secs: dict[str, float]  # Wall time of each component
    peak_bytes: int  # Largest resident size of the process
    auc: float  # AUC of the pushed model, on the evaluation split

    @classmethod
    def of(
        cls, process_secs: float, usage: resource.struct_rusage, component_secs: dict[str, float], auc: float
    ) -> "Measurement":
        """Returns the measurement of a process that has ended with this usage."""
        cpu_secs = usage.ru_utime + usage.ru_stime
        return cls(process_secs, cpu_secs, component_secs, usage.ru_maxrss * 1024, auc)

    @property
    def rest_secs(self) -> float:
        """Wall time outside of the components: imports, above all."""
        return self.process_secs - sum(self.component_secs.values())


@dataclasses.dataclass(frozen=True)
class Work:
    """A CSV, and what both sides do with it."""

    title: str  # Title of its table
    size: int  # Number of rows or columns, for the charts
    write: Callable[[pathlib.Path], None]  # Function that writes the CSV to a path
    stock: Sequence[str]  # Arguments of `benchmarks.stock_pipeline`
    ours: Sequence[str]  # Arguments of `python -m pipelines run`
    limit_secs: float  # Time after which a side is stopped

    def measure_stock(self, data: pathlib.Path, root: pathlib.Path) -> Measurement | None:
        """Runs stock TFX on a folder with one CSV; returns None if it was stopped."""
        command = ["-m", "benchmarks.stock_pipeline", "--data", str(data), "--root", str(root)]
        ran = run_python([*command, *self.stock], root, self.limit_secs)
        if ran is None:
            return None
        evaluation = next(root.glob("artifacts/Evaluator/evaluation/*"))
        return Measurement.of(*ran[:2], component_secs(root / "metadata.sqlite"), _auc(evaluation))

    def measure_ours(self, data: pathlib.Path, root: pathlib.Path) -> Measurement | None:
        """Runs `python -m pipelines run` on a folder with one CSV; returns None if it was stopped."""
        command = ["-m", "pipelines", "run", "--set", f"data.path={data}", "--root", str(root)]
        ran = run_python([*command, *self.ours], root, self.limit_secs)
        if ran is None:
            return None
        outcome = json.loads(ran[2].splitlines()[-1])
        return Measurement.of(*ran[:2], step_secs(root), outcome["metrics"]["auc"])


def taxi(rows: int, steps: int, limit_secs: float, csv: pathlib.Path | None = None) -> Work:
    """Returns the taxi trips' work."""

    def write(path: pathlib.Path) -> None:
        if csv is not None:
            shutil.copy(csv, path)
            return
        from pipelines.examples.taxi import generate

        facts = generate.write_csv(path, rows, seed=1)
        print(f"best reachable AUC {facts['best_auc']:.4f}", file=sys.stderr)

    config = str(REPOSITORY / "pipelines" / "examples" / "taxi" / "taxi.toml")
    ours = ["--config", config, "--set", f"trainer.train_steps={steps}"]
    title = str(csv) if csv else f"{rows:,} taxi trips"
    return Work(title, rows, write, ["--steps", str(steps)], ours, limit_secs)


def wide(columns: int, steps: int, limit_secs: float) -> Work:
    """Returns the work on a table of numbers with many columns."""
    module = ["--module", "benchmarks.wide_table", "--label", wide_table.LABEL, "--slice", ""]
    settings = {
        "data.label": wide_table.LABEL,
        "trainer.model": "linear",
        "trainer.train_steps": steps,
        "trainer.batch_size": wide_table.BATCH_SIZE,
        "trainer.early_stopping": "false",
    }
    return Work(
        f"{_WIDE_ROWS:,} rows of {columns:,} numbers",
        columns,
        lambda path: wide_table.write_csv(path, _WIDE_ROWS, columns, seed=1),
        ["--steps", str(steps), *module],
        [word for key, value in settings.items() for word in ("--set", f"{key}={value}")],
        limit_secs,
    )


def run_python(
    arguments: Sequence[str], root: pathlib.Path, limit_secs: float = math.inf
) -> tuple[float, resource.struct_rusage, str] | None:
    """Runs Python to its end and returns its wall time, what it used, and stdout."""
    root.mkdir()
    log = root / "benchmark.log"
    with log.open("w") as stderr, tempfile.TemporaryFile("w+") as stdout:
        start = time.monotonic()
        process = subprocess.Popen([sys.executable, *arguments], cwd=REPOSITORY, stdout=stdout, stderr=stderr)
        stopping = threading.Timer(min(limit_secs, threading.TIMEOUT_MAX), process.kill)
        stopping.start()
        _, status, usage = os.wait4(process.pid, 0)
        stopping.cancel()
        process_secs = time.monotonic() - start
        if process_secs >= limit_secs:
            process.returncode = os.waitstatus_to_exitcode(status)
            return None
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            print(log.read_text()[-5000:], file=sys.stderr)
            raise SystemExit(f"exit code {process.returncode} of: python {' '.join(arguments)}")
        stdout.seek(0)
        return process_secs, usage, stdout.read()


def component_secs(metadata: pathlib.Path) -> dict[str, float]:
    """Returns the wall time of each execution in ML Metadata, by the name of its component."""
    import ml_metadata
    from ml_metadata.proto import metadata_store_pb2

    connection = metadata_store_pb2.ConnectionConfig()
    connection.sqlite.filename_uri = str(metadata)
    store = ml_metadata.MetadataStore(connection)
    names = {kind.id: kind.name.rpartition(".")[2] for kind in store.get_execution_types()}
    return {
        names[execution.type_id]: (execution.last_update_time_since_epoch - execution.create_time_since_epoch)
        / 1000
        for execution in store.get_executions()
    }


def step_secs(root: pathlib.Path) -> dict[str, float]:
    """Returns the wall time of each step in one of our roots, by component."""
    files = root.glob("artifacts/*/*/step.json")
    return {file.parents[1].name: json.loads(file.read_text())["elapsed_secs"] for file in files}


def _auc(evaluation: pathlib.Path) -> float:
    """Returns the AUC over the whole data set from TFMA's result."""
    from components.tfx import compat as tfx_compat

    tfx_compat.install()
    import tensorflow_model_analysis as tfma

    result = tfma.load_eval_result(str(evaluation))
    overall = next(metrics for keys, metrics in result.slicing_metrics if not keys)
    return overall[""][""]["auc"]["doubleValue"]


def median(measurements: list[Measurement]) -> Measurement:
    """Returns the median of each figure."""
    return Measurement(
        statistics.median(item.process_secs for item in measurements),
        statistics.median(item.cpu_secs for item in measurements),
        {
            name: statistics.median(item.component_secs[name] for item in measurements)
            for name in measurements[0].component_secs
        },
        round(statistics.median(item.peak_bytes for item in measurements)),
        statistics.median(item.auc for item in measurements),
    )


def report(stock: Measurement | None, ours: Measurement | None) -> str:
    """Returns the comparison as a table; a side without a measurement was stopped."""

    def row(name: str, value: Callable[[Measurement], float | None], form: str = ".2f") -> list[str]:
        theirs, mine = (None if side is None else value(side) for side in (stock, ours))
        both = theirs is not None and mine is not None and min(theirs, mine) >= _LEAST_SECS
        cells = ["-" if cell is None else f"{cell:{form}}" for cell in (theirs, mine)]
        return [name, *cells, f"{theirs / mine:.2f}x" if both else "-"]  # type: ignore[operator]

    rows = [
        row(name, lambda side, name=name: side.component_secs.get(name))  # type: ignore[misc]
        for name in (*COMPONENTS, "ServingCheck")
    ]
    rows += [
        row("imports and the rest", lambda side: side.rest_secs),
        row("whole process", lambda side: side.process_secs),
        row("its processor time", lambda side: side.cpu_secs),
        row("peak memory, MiB", lambda side: side.peak_bytes / _MEBIBYTE, ".0f"),
        [*row("AUC of the model", lambda side: side.auc, ".4f")[:3], ""],
    ]
    return tables.format_table(["", "stock TFX, s", "ours, s", "stock / ours"], rows)


def main() -> None:
    """Measures both sides and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, help="taxi CSV; default: generated trips")
    parser.add_argument("--rows", type=int, nargs="*", default=[], help="trips to generate")
    parser.add_argument("--columns", type=int, nargs="*", default=[], help="columns of wide tables")
    parser.add_argument("--steps", type=int, default=1000, help="training steps")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    parser.add_argument("--limit-secs", type=float, default=1800, help="longest run of a side")
    parser.add_argument("--docs", action="store_true", help="write the charts of docs/speed.md")
    args = parser.parse_args()
    rows = args.rows or ([] if args.data or args.columns else [15_000])
    kinds = {
        "rows": [taxi(number, args.steps, args.limit_secs) for number in sorted(rows)],
        "columns": [wide(number, args.steps, args.limit_secs) for number in sorted(args.columns)],
    }
    if args.data:
        compare([taxi(0, args.steps, args.limit_secs, args.data)], args.rounds)
    for kind, works in kinds.items():
        measured = compare(works, args.rounds)
        if args.docs and works:
            for name, chart in draw(kind, measured).items():
                (REPOSITORY / "docs" / "figures" / name).write_text(chart)


def compare(works: Sequence[Work], rounds: int) -> dict[str, dict[int, Measurement]]:
    """Runs both sides on each work, several times, and prints the tables."""
    sides = {"stock TFX": Work.measure_stock, "this project": Work.measure_ours}
    medians: dict[str, dict[int, Measurement]] = {side: {} for side in sides}
    stopped: set[str] = set()
    for work in works:
        measured: dict[str, list[Measurement]] = {side: [] for side in sides}
        with tempfile.TemporaryDirectory() as scratch:
            data = pathlib.Path(scratch, "data")
            data.mkdir()
            work.write(pathlib.Path(scratch, "rows.csv"))  # which may also write facts
            pathlib.Path(scratch, "rows.csv").rename(data / "rows.csv")
            for number in range(rounds):
                for side in list(sides)[:: -1 if number % 2 else 1]:
                    if side in stopped:
                        continue
                    print(f"{work.title}, round {number + 1}: {side} ...", file=sys.stderr)
                    root = pathlib.Path(scratch, f"{side.split()[0]}-{number}")
                    found = sides[side](work, data, root)
                    shutil.rmtree(root)
                    if found is None:
                        print(f"{work.title}: {side} was stopped after {work.limit_secs:.0f} s")
                        stopped.add(side)
                    else:
                        measured[side].append(found)
        medians = {
            side: {**of_size, work.size: median(measured[side])} if measured[side] else of_size
            for side, of_size in medians.items()
        }
        print(f"\n{work.title}\n{report(*(of_size.get(work.size) for of_size in medians.values()))}")
        pairs = list(zip(*measured.values(), strict=False))
        for what, name in (("process_secs", "whole process"), ("cpu_secs", "its processor time")):
            ratios = [f"{getattr(stock, what) / getattr(ours, what):.2f}x" for stock, ours in pairs]
            print(f"{name}, by round: {', '.join(ratios)}", flush=True)
    return medians


def draw(kind: str, medians: dict[str, dict[int, Measurement]]) -> dict[str, str]:
    """Returns the charts of one kind of size, `rows` or `columns`, by file name."""

    def chart(title: str, unit: str, value: Callable[[Measurement], float]) -> str:
        series = {
            side: [(float(size), value(found)) for size, found in of_size.items()]
            for side, of_size in medians.items()
            if of_size
        }
        return charts.lines(title, (kind, unit), series)

    return {
        f"pipeline-{kind}.svg": chart(
            f"A pipeline's whole time by {kind}", "seconds", lambda found: found.process_secs
        ),
        f"pipeline-{kind}-memory.svg": chart(
            f"A pipeline's peak memory by {kind}", "MiB", lambda found: found.peak_bytes / _MEBIBYTE
        ),
    }


if __name__ == "__main__":
    main()
