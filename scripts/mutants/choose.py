"""Chooses the mutants of tests/mutants/mutants.json: 300, at least 3 in each folder, by its lines of Python.

Choosing again after the sources have changed gives other mutants, which makes results incomparable.
"""

import collections
import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "mutants"))

from sites import find_sites  # noqa: E402

MUTANTS = ROOT / "tests" / "mutants" / "mutants.json"
TOTAL, FEWEST, SEED = 300, 3, 51


def room(file: str) -> str:
    """Returns the folder of a file, such as estimator_core/heads, or its package if it is in no folder."""
    return "/".join(file.split("/")[: 2 if file.count("/") > 1 else 1])


def choose() -> list[dict[str, object]]:
    """Returns the chosen mutants, sorted by place."""
    rooms = collections.defaultdict(list)
    for package in ("estimator_core", "components", "pipelines"):
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            rooms[room(file)].append((file, path.read_text()))
    lines = {name: sum(source.count("\n") for _, source in files) for name, files in rooms.items()}
    numbers = dict.fromkeys(rooms, FEWEST)
    while sum(numbers.values()) < TOTAL:  # the next one goes where a mutant stands for the most lines
        numbers[max(rooms, key=lambda name: lines[name] / numbers[name])] += 1
    chance = random.Random(SEED)
    chosen, operators_used = [], collections.Counter()
    for name, files in rooms.items():
        by_operator = collections.defaultdict(list)
        for file, source in files:
            for site in find_sites(source):
                by_operator[site.operator].append((file, site.function or site.line, source, site))
        functions_used = collections.Counter()
        for _ in range(numbers[name]):
            uses = {
                operator: min(functions_used[place[:2]] for place in places)
                for operator, places in by_operator.items()
            }
            operator = min(uses, key=lambda key: (uses[key], operators_used[key], key))
            places = by_operator[operator]
            place = chance.choice([place for place in places if functions_used[place[:2]] == uses[operator]])
            file, function, source, site = place
            functions_used[file, function] += 1
            operators_used[operator] += 1
            chosen.append(
                {
                    "file": file,
                    "line": site.line,
                    "column": site.column,
                    "operator": operator,
                    "mutated": site.mutated,
                    "source": source.split("\n")[site.line - 1].strip(),
                }
            )
    return sorted(chosen, key=lambda mutant: (mutant["file"], mutant["line"], mutant["column"]))


if __name__ == "__main__":
    MUTANTS.parent.mkdir(exist_ok=True)
    rows = [json.dumps({"number": number, **mutant}) for number, mutant in enumerate(choose(), 1)]
    MUTANTS.write_text("[\n" + ",\n".join(rows) + "\n]\n")
