"""Evaluation, prediction and start-up: our Estimator against tf.estimator itself.

python benchmarks/inference.py [--reference-python PYTHON] [--rounds 5] [--rows 1000000] [--calls 100]

DNNClassifier [64, 32] on 3 numeric and 2 embedding columns; the rows are batches of 256 that are in memory.
Each contestant is a process of its own, and the rounds interleave them. The ratios are of processor time,
which other work on the machine changes less than the time; the medians count. The predictor, which
tf.estimator has not, is compared with `predict` of it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from benchmarks import tables  # noqa: E402  (the script may be started from anywhere)

OURS, REFERENCE = "ours", "reference"


def measure(python: str, kind: str, work: str, count: int) -> dict[str, float]:
    """Returns what one contestant prints: "secs" and "processor_secs" of one row or call.

    Raises:
      SystemExit: It failed; its log is printed.
    """
    command = [python, str(FOLDER / "inference_contestant.py"), kind, work, "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER.parent)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode} of: {' '.join(command)}")
    printed = json.loads(done.stdout.splitlines()[-1])
    return {name: printed[name] / count for name in ("secs", "processor_secs")}


def main() -> None:
    """Measures all work and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference-python", help="interpreter with TensorFlow 2.15 or older")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=100, help="of `predict`; the predictor: 10x")
    args = parser.parse_args()
    # Work of ours -> (how often, what it is compared with, how often, unit in seconds).
    works = {
        "evaluate": (args.rows, "evaluate", args.rows, 1e-6),
        "predict": (args.rows, "predict", args.rows, 1e-6),
        "one_row": (args.calls, "one_row", args.calls, 1e-3),
        "predictor": (10 * args.calls, "one_row", args.calls, 1e-3),
        "import": (1, "import", 1, 1.0),
        "first_step": (1, "first_step", 1, 1.0),
    }
    rows = []
    for work, (count, other, other_count, unit) in works.items():
        print(f"{work} ...", file=sys.stderr)
        found: dict[str, list[dict[str, float]]] = {OURS: [], REFERENCE: []}
        for _ in range(args.rounds):
            found[OURS].append(measure(sys.executable, OURS, work, count))
            if args.reference_python:
                found[REFERENCE].append(
                    measure(args.reference_python, REFERENCE, other, other_count)
                )
        rows.append(_row(work, found, {1e-6: "us", 1e-3: "ms", 1.0: "s"}[unit], unit))
    header = ["", "unit", "ours: processor", "time", "it: processor", "time", "it / ours", "range"]
    print(tables.format_table(header, rows))


def _row(work: str, found: dict[str, list[dict[str, float]]], name: str, unit: float) -> list[str]:
    cells = [work, name]
    for runs in found.values():
        for kind in ("processor_secs", "secs"):
            values = [run[kind] / unit for run in runs]
            cells.append(f"{statistics.median(values):.3g}" if values else "")
    ratios = [
        other["processor_secs"] / own["processor_secs"]
        for own, other in zip(found[OURS], found[REFERENCE], strict=False)
    ]
    if ratios:
        cells += [f"{statistics.median(ratios):.2f}x", f"{min(ratios):.2f}-{max(ratios):.2f}"]
    return cells + [""] * (8 - len(cells))


if __name__ == "__main__":
    main()
