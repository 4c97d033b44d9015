"""How fast the Estimator is: ours beside tf.estimator 2.15, Keras 3's fit and the bare loop, as one table.

python benchmarks/speed.py [--only a,b] [--rounds 5] [--reference-python PYTHON] [--docs]

Each contestant is a process of its own. In each round, all contestants of a piece of work run one after the
other; a ratio is of two measurements of one round, and the table has the medians and the ranges of the rounds.
Before anything is measured, the contestants must have done the same: batch size, variables, steps, loss.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parent
PROJECT = FOLDER.parent
sys.path.insert(0, str(PROJECT))

from benchmarks import speed_table, tables  # noqa: E402  (the script may be started from anywhere)
from benchmarks.speed_table import Run  # noqa: E402
from benchmarks.speed_works import WORKS, Contestant, Work  # noqa: E402

CACHE = PROJECT / ".bench"
RESULTS = CACHE / "speed.json"


def run_contestant(work: Work, contestant: Contestant, python: str, *options: str) -> Any:
    """Returns what `contestant.py` prints.

    Raises:
      SystemExit: It failed; its log is printed.
    """
    command = [python, str(FOLDER / "contestant.py"), contestant.work or work.work, contestant.kind]
    command += ["--settings", json.dumps(dict(contestant.settings)), *options]
    count = contestant.count or work.count
    if count:
        command += ["--count", str(count)]
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "SPEED_CACHE": str(CACHE)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, env=environment)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode} of: {' '.join(command)}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(work: Work, rounds: int, reference_python: str) -> list[Run]:
    """Returns the runs of all contestants, round by round.

    Raises:
      SystemExit: One failed, or they have not done the same.
    """
    runs, checks = [], {}
    for number in range(rounds):
        for contestant in work.contestants:
            print(f"({work.letter}) {number + 1}/{rounds} {contestant.name}", file=sys.stderr)
            python = reference_python if contestant.kind == "reference" else sys.executable
            options = ["--check"] if number == 0 else []
            measured = run_contestant(work, contestant, python, *options)
            runs.append(Run(contestant.name, measured["secs"], measured["processor_secs"]))
            if measured.get("check"):
                checks[contestant.name] = measured["check"]
        if number == 0 and checks:
            found = speed_table.differences(work, checks)
            if found:
                raise SystemExit(f"({work.letter}) Not the same work. " + "; ".join(found))
    return runs


def save(work: Work, runs: Sequence[Run], load: float) -> None:
    """Adds the runs of a piece of work to the results, in place of those it had."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results[work.letter] = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "load": load,
        "runs": [dataclasses.asdict(run) for run in runs],
    }
    CACHE.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def machine() -> str:
    """Returns what the figures were measured on."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    processor = names[0] if names else platform.machine()
    return f"{len(os.sched_getaffinity(0))} cores ({processor})"


def lines_of(results: dict[str, Any], works: Sequence[Work], by_processor: bool) -> list[list[str]]:
    """Returns the cells of the table."""
    return [
        speed_table.cells(row, by_processor)
        for work in works
        if work.letter in results
        for row in speed_table.rows_of(
            work, [Run(**run) for run in results[work.letter]["runs"]], by_processor
        )
    ]


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    letters = [work.letter for work in WORKS]
    parser.add_argument("--only", default=",".join(letters), help="such as a,b; all by default")
    parser.add_argument("--rounds", type=int, default=5, help="alternations")
    parser.add_argument(
        "--reference-python", help="interpreter with TensorFlow 2.15; made if absent"
    )
    parser.add_argument(
        "--by-processor", action="store_true", help="judge by processor time: on a busy machine"
    )
    parser.add_argument(
        "--show", action="store_true", help="measure nothing: what was measured last"
    )
    args = parser.parse_args()
    chosen = [work for work in WORKS if work.letter in args.only.split(",")]
    for work in [] if args.show else chosen:
        runs = measure(work, args.rounds, args.reference_python)
        save(work, runs, os.getloadavg()[2])
    results = json.loads(RESULTS.read_text())
    lines = lines_of(results, WORKS if args.show else chosen, args.by_processor)
    print(machine())
    print(tables.format_table(speed_table.HEADER, lines))


if __name__ == "__main__":
    main()
