"""Memory and time of many `evaluate` calls in one process: our Estimator against tf.estimator itself.

python benchmarks/evaluate_calls.py [--reference-python PYTHON] [--calls 200]

The resident memory of the process is read after each call, when Python has collected its garbage:
graphs are cyclic, and it would rise and fall with what waits to be collected. The first calls, in
which TensorFlow fills its pools, don't count. The slope is that of a least-squares line through the
rest. The contestants run one after the other, twice, in turn.
"""

import argparse
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from benchmarks.predict_latency import (  # noqa: E402  (the script may be started from anywhere)
    OURS,
    REFERENCE,
    classifier_and_input_fn,
)

WARM_UP_CALLS = 20
MEBIBYTE = 2**20


def resident_bytes():
    """Returns the resident memory of this process (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_contestant(name, calls):
    """Prints the resident bytes after each call, and the milliseconds of each, as JSON."""
    with tempfile.TemporaryDirectory() as model_dir:
        classifier, input_fn = classifier_and_input_fn(name, model_dir)
        measured = []
        for _ in range(WARM_UP_CALLS + calls):
            start = time.perf_counter()
            classifier.evaluate(input_fn)
            milliseconds = 1000 * (time.perf_counter() - start)
            gc.collect()
            measured.append((resident_bytes(), milliseconds))
    print(json.dumps(measured[WARM_UP_CALLS:]))


def measure(python, name, calls):
    """Returns the resident bytes after each call of one contestant, and the milliseconds of each.

    Raises:
      SystemExit: It failed; its log is printed.
    """
    command = [
        python,
        str(FOLDER / "evaluate_calls.py"),
        "--contestant",
        name,
        "--calls",
        str(calls),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER.parent)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode} of: {' '.join(command)}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Measures all contestants and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference-python", help="interpreter with TensorFlow 2.15 or older")
    parser.add_argument("--calls", type=int, default=200, help=f"after {WARM_UP_CALLS} first ones")
    parser.add_argument("--contestant", choices=(OURS, REFERENCE), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contestant:
        run_contestant(args.contestant, args.calls)
        return

    import numpy as np

    from benchmarks import tables

    pythons = {OURS: sys.executable}
    if args.reference_python:
        pythons[REFERENCE] = args.reference_python
    measured = {name: [] for name in pythons}
    for _ in range(2):
        for name, python in pythons.items():
            measured[name].append(np.array(measure(python, name, args.calls)))
    ours = np.median([run[:, 1] for run in measured[OURS]])
    rows = []
    for name, runs in measured.items():
        median = np.median([run[:, 1] for run in runs])
        for number, run in enumerate(runs):
            resident = run[:, 0] / MEBIBYTE
            slope = np.polyfit(np.arange(len(resident)), resident, 1)[0]
            figures = [f"{resident[0]:.0f}", f"{resident[-1]:.0f}", f"{1024 * slope:+.1f}"]
            times = [f"{np.median(run[:, 1]):.1f}", f"{median / ours:.2f}x"]
            rows.append([f"{name}, run {number + 1}", str(args.calls), *figures, *times])
    header = ["", "calls", "first MiB", "last MiB", "KiB per call", "median ms", "it / ours"]
    print(tables.format_table(header, rows))


if __name__ == "__main__":
    main()
