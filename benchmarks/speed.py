"""Compares the Estimator's speed with tf.estimator 2.15, Keras 3's fit and the bare loop, in one table.

python benchmarks/speed.py [--only a,b] [--rounds 5] [--reference-python PYTHON] [--docs]

Each contestant runs in its own process. In each round, all contestants of a piece of work run one after the
other; a ratio compares two measurements of one round, and the table has medians and ranges over the rounds.
The first round checks that the contestants did the same (batch size, variables, steps, loss), or it fails.
Other work on the machine affects processor time less than time. Results are kept in .bench/speed.json.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Collection, Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import speed_docs, speed_growth, speed_runs, speed_table, tables
from benchmarks.speed_works import WORKS, Contestant, Work

KINDS = "ours,reference,keras,floor,input,tensorflow"


def with_settings(works: Sequence[Work], extra: Sequence[str]) -> list[Work]:
    """Returns works with our contestant added under further settings of the RunConfig."""
    more = []
    for setting in extra:
        name, sign, settings = setting.partition("=")
        if not sign:
            raise ValueError(f"--ours takes a name, = and settings as JSON. Received: {setting!r}")
        more.append(Contestant(f"estimator_core, {name}", "ours", json.loads(settings)))
    return [
        dataclasses.replace(work, contestants=(work.contestants[0], *more, *work.contestants[1:]))
        for work in works
    ]


def only_kinds(works: Sequence[Work], kinds: Collection[str]) -> list[Work]:
    """Returns works with the contestants of some KINDS."""
    return [
        dataclasses.replace(
            work, contestants=tuple(contestant for contestant in work.contestants if contestant.kind in kinds)
        )
        for work in works
    ]


def environments(
    works: Sequence[Work], uv: str, reference_python: str | None, with_reference: bool
) -> dict[str, str]:
    """Returns the Pythons of the environments that contestants run in; missing ones are created."""
    names = {contestant.environment or contestant.kind for work in works for contestant in work.contestants}
    names |= {"reference"} if with_reference else set()
    environments_by_name = {"reference": reference_python} if reference_python else {}
    return environments_by_name | {
        name: speed_runs.environment_python(name, uv)
        for name in speed_runs.PACKAGES
        if name in names and name not in environments_by_name
    }


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    letters = ",".join(work.letter for work in WORKS)
    parser.add_argument("--only", default=letters, help=f"letters of {letters}; all by default")
    parser.add_argument("--kinds", default=KINDS, help=f"kinds of contestants; {KINDS} by default")
    parser.add_argument("--rounds", type=int, default=5, help="alternations")
    parser.add_argument("--reference-python", help="Python with tf.estimator 2.15; default: create one")
    parser.add_argument("--uv", default="uv", help="that makes it")
    parser.add_argument("--ours", action="append", default=[], metavar="NAME=JSON", help="another RunConfig")
    parser.add_argument("--by-processor", action="store_true", help="judge by processor time")
    parser.add_argument("--growth", action="store_true", help="also measure steps/s by batch and by features")
    parser.add_argument(
        "--memory-steps", type=int, help="also measure memory in a training of this many steps"
    )
    parser.add_argument("--memory-calls", type=int, help="also measure memory in this many calls of evaluate")
    parser.add_argument("--docs", action="store_true", help="write docs/speed.md and its figures")
    parser.add_argument("--show", action="store_true", help="only print the table of the last results")
    args = parser.parse_args()
    unknown = set(filter(None, args.only.split(","))) - set(letters.split(","))
    if unknown:
        parser.error(f"--only takes letters of {letters}. Received: {sorted(unknown)}")
    try:
        works = with_settings(WORKS, args.ours)
    except ValueError as error:
        parser.error(str(error))
    if not args.show:
        chosen = [
            work for work in only_kinds(works, args.kinds.split(",")) if work.letter in args.only.split(",")
        ]
        others = args.growth or args.memory_steps or args.memory_calls
        pythons = environments(chosen, args.uv, args.reference_python, with_reference=others)
        for work in chosen:
            speed_runs.save_runs(work, speed_runs.measure(work, args.rounds, pythons))
        if args.growth:
            speed_runs.save("growth", speed_growth.measure(args.rounds, pythons))
        if args.memory_steps:
            measured = speed_growth.memory("memory", args.memory_steps, pythons)
            speed_runs.save("memory", measured)
        if args.memory_calls:
            measured = speed_growth.memory("memory_evaluate", args.memory_calls, pythons)
            speed_runs.save("memory_evaluate", measured)
    show(speed_runs.load_results(), works, args)


def show(results: dict[str, Any], works: Sequence[Work], args: argparse.Namespace) -> None:
    """Prints the table, and writes the page."""
    rows = speed_table.table(works, results, args.by_processor)
    if rows:
        lines = speed_table.lines(rows, args.by_processor)
        print(tables.format_table(speed_table.HEADER, lines))
        print(speed_runs.conditions(results, works))
    for line in speed_growth.memory_lines(results):
        print(line)
    if args.docs:
        conditions = speed_runs.conditions(results, works)
        speed_docs.write(speed_docs.PAGE, rows, results, conditions, args.by_processor)


if __name__ == "__main__":
    main()
