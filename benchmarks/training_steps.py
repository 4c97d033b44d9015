"""Training steps per second of a small DNN: our Estimator, Keras 3 fit, tf.estimator itself.

python benchmarks/training_steps.py [--reference-python PYTHON] [--rounds 3] [--steps 2000]

DNN [64, 32] on 3 numeric and 2 embedding columns, batch size 128, Adam, tf.data from memory. Each
contestant is a process of its own; the rounds interleave them, and the median counts. Other work on the
machine changes the processor time of a step less than the time.
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

CONTESTANTS = {
    "estimator_core": ["estimator"],
    "estimator_core, jit_compile": ["estimator", "--jit"],
    "estimator_core, one step a call": ["estimator", "--steps-per-session-run", "1"],
    "Keras fit": ["keras"],
    "Keras fit, jit_compile": ["keras", "--jit"],
    "Keras fit, steps_per_execution=50": ["keras", "--steps-per-execution", "50"],
    "Keras fit, both": ["keras", "--steps-per-execution", "50", "--jit"],
}
REFERENCE = "tf.estimator"


def measure(python: str, arguments: list[str], steps: int) -> tuple[float, float]:
    """Returns the steps per second of one contestant, and its processor milliseconds of a step.

    Raises:
      SystemExit: It failed; its log is printed.
    """
    command = [python, str(FOLDER / "training_contestant.py"), *arguments, "--steps", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER.parent)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode} of: {' '.join(command)}")
    measured = json.loads(done.stdout.splitlines()[-1])
    return measured["steps_per_sec"], measured["processor_ms_per_step"]


def main() -> None:
    """Measures all contestants and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference-python", help="interpreter with TensorFlow 2.15 or older")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000, help="after 300 steps of warm-up")
    args = parser.parse_args()
    runs = {name: (sys.executable, arguments) for name, arguments in CONTESTANTS.items()}
    if args.reference_python:
        runs[REFERENCE] = (args.reference_python, ["reference"])
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    processor_ms: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds} ...", file=sys.stderr)
        for name, (python, arguments) in runs.items():
            speed, milliseconds = measure(python, arguments, args.steps)
            speeds[name].append(speed)
            processor_ms[name].append(milliseconds)
    ours = statistics.median(speeds["estimator_core"])
    rows = []
    for name, values in speeds.items():
        median = statistics.median(values)
        spread = f"{min(values):.0f}-{max(values):.0f}"
        milliseconds = f"{statistics.median(processor_ms[name]):.2f}"
        rows.append([name, f"{median:.0f}", spread, f"{ours / median:.2f}x", milliseconds])
    header = ["", "steps/s", "range", "ours / it", "processor ms a step"]
    print(tables.format_table(header, rows))


if __name__ == "__main__":
    main()
