"""Changes the sources in 300 places, one at a time, and counts how many of the changes make a test fail.

The work happens in .mutants/tree, a copy of the sources that holds all mutants of tests/mutants/mutants.json
(sites.py). First every test of `make test` runs once, without a mutant, which tells which tests reach which
mutants, also in subprocesses. Then, for each mutant, the tests that reach it run until one fails. The same
follows with the tests that `make test-more` adds, for the mutants that survived. mutmut and cosmic-ray fit
less well: cosmic-ray starts the whole test command for each mutant, and mutmut does not see what subprocesses
reach.

A second call continues where the first one was interrupted, with the sources as they were copied. To start
again, remove .mutants.
"""

import argparse
import collections
import compileall
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "mutants"))

from choose import MUTANTS, room  # noqa: E402
from forks import Forks, has_failed, import_libraries  # noqa: E402
from sites import find_sites, with_mutants  # noqa: E402
from watch import append, rows  # noqa: E402

WORK = ROOT / ".mutants"
TREE, TESTS, RESULTS = WORK / "tree", WORK / "tests.jsonl", WORK / "results.jsonl"
PACKAGES = ("estimator_core", "components", "pipelines")
CIRCLES = {"test": "not more", "more": "more"}  # `make test`, and what `make test-more` adds to it
CIRCLE_SECS = 60  # of tests of a circle, for each mutant
BATCH_SECS, BATCH_FILES = 15, 10  # of tests in a fork
MAP_SECS = 3600


def copy_sources(mutants: list[dict[str, Any]]) -> None:
    """Copies the sources to .mutants/tree and puts the mutants into the copy."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    unfinished = WORK / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    for file in files:
        if (ROOT / file).is_file():
            (unfinished / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, unfinished / file)
    sites: dict[str, dict[int, Any]] = collections.defaultdict(dict)
    gone = []
    for mutant in mutants:
        file = unfinished / mutant["file"]
        source = file.read_text() if file.exists() else ""
        lines = source.split("\n")
        wanted = (mutant["operator"], mutant["mutated"], mutant["source"])
        matches = [
            (abs(site.line - mutant["line"]), abs(site.column - mutant["column"]), site)
            for site in find_sites(source)
            if (site.operator, site.mutated, lines[site.line - 1].strip()) == wanted
        ]
        if matches:
            sites[mutant["file"]][mutant["number"]] = min(matches, key=lambda match: match[:2])[2]
        else:
            gone.append(mutant["number"])
    for name, mutated in sites.items():
        (unfinished / name).write_text(with_mutants((unfinished / name).read_text(), mutated))
    for package in PACKAGES:
        compileall.compile_dir(unfinished / package, quiet=1)
    (WORK / "gone.json").write_text(json.dumps(gone))
    unfinished.rename(TREE)


def folders_of_tests() -> list[str]:
    """Returns the folders whose tests run in one fork, those of the packages first."""
    folders = set()
    for file in (TREE / "tests").rglob("test_*.py"):
        parts = file.relative_to(TREE).parts
        folders.add("/".join(parts[: 3 if parts[1] in PACKAGES else 2]))
    return sorted(folders, key=lambda name: (name.count("/") < 2, name))


def map_tests(forks: Forks, circle: str, folders: list[str], markers: str) -> None:
    """Runs the tests of a circle without a mutant, and records what they reach."""
    done = {(row["circle"], row["folder"]) for row in rows(TESTS) if "folder" in row}
    for folder in folders:
        if (circle, folder) not in done:
            start = time.monotonic()
            tests = forks.run([folder], markers=f"{CIRCLES[circle]} and {markers}", limit_secs=MAP_SECS)
            for row in tests:
                append(TESTS, {**row, "circle": circle})
            append(TESTS, {"folder": folder, "circle": circle})
            outcomes = dict(collections.Counter(row["outcome"] for row in tests))
            print(f"{folder}, {circle}: {outcomes} in {time.monotonic() - start:.0f} s", flush=True)


def batches(tests: list[dict[str, Any]], file: str) -> Iterator[list[str]]:
    """Yields tests by fork, those first that are likely to find a mutant of the file soon."""
    folder, stem = f"tests/{os.path.dirname(file)}/", pathlib.PurePath(file).stem
    turns = collections.Counter()  # the fastest test of each file first, then the second of each
    order = {}
    for row in sorted(tests, key=lambda row: row["seconds"]):
        path = row["test"].split("::")[0]
        turns[path] += 1
        distance = 0 if path.endswith(f"/test_{stem}.py") else 1 if path.startswith(folder) else 2
        order[row["test"]] = distance, turns[path], row["seconds"]
    batch, files, batch_secs, all_secs = [], set(), 0, 0
    for row in sorted(tests, key=lambda row: order[row["test"]]):
        batch.append(row["test"])
        files.add(row["test"].split("::")[0])
        batch_secs += row["seconds"]
        all_secs += row["seconds"]
        if batch_secs > BATCH_SECS or len(files) == BATCH_FILES:
            yield batch
            batch, files, batch_secs = [], set(), 0
        if all_secs > CIRCLE_SECS:
            break
    if batch:
        yield batch


def run_mutant(
    forks: Forks, mutant: dict[str, Any], tests: list[dict[str, Any]], trusted: dict[str, bool]
) -> dict[str, Any]:
    """Runs the tests that reach a mutant until one fails, and returns the result.

    Args:
      forks: Runs tests.
      mutant: Mutant to run.
      tests: Rows of the tests that reach it.
      trusted: Tests that have found mutants; False if they also fail alone and without a mutant.
    """
    num_tests = 0
    for batch in batches(tests, mutant["file"]):
        while batch:
            paths = list(dict.fromkeys(name.split("::")[0] for name in batch))
            outcomes = forks.run(paths, mutant["number"], batch)
            num_tests += len(outcomes)
            failed = next(filter(has_failed, outcomes), None)
            if failed is None:
                break
            name = failed["test"]
            is_test = "::" in name  # otherwise a file that could not be imported
            if name not in trusted:
                alone = forks.run([name.split("::")[0]], tests=[name] if is_test else batch)
                trusted[name] = not any(map(has_failed, alone))
                append(RESULTS, {"test": name, "trusted": trusted[name]})
            if trusted[name]:
                return {"outcome": failed["outcome"], "test": name, "ran": num_tests}
            begun = {row["test"] for row in outcomes}
            batch = [test for test in batch if is_test and test not in begun]
    return {"outcome": "survived", "ran": num_tests, "of": len(tests)}


def run_mutants(forks: Forks, circle: str, mutants: list[dict[str, Any]], limit: int | None) -> None:
    """Runs the mutants that no test has found so far, with the tests of a circle."""
    tests = [row for row in rows(TESTS) if row.get("outcome") == "passed" and row["circle"] == circle]
    trusted = {row["test"]: row["trusted"] for row in rows(RESULTS) if "trusted" in row}
    results = [row for row in rows(RESULTS) if "mutant" in row]
    found = {row["mutant"] for row in results if row["outcome"] != "survived"}
    num_tests = {
        row["mutant"]: row["of"] for row in results if row["mutant"] not in found and row["circle"] == circle
    }
    left = []
    for mutant in mutants:
        number = mutant["number"]
        reaching = [row for row in tests if number in row["reached"] and trusted.get(row["test"], True)]
        if number not in found and "equivalent" not in mutant and len(reaching) > num_tests.get(number, 0):
            left.append((mutant, reaching))
    for mutant, reaching in left[:limit]:
        start = time.monotonic()
        result = run_mutant(forks, mutant, reaching, trusted)
        seconds = round(time.monotonic() - start, 1)
        append(RESULTS, {"mutant": mutant["number"], "circle": circle, **result, "seconds": seconds})
        print(f"{mutant['number']} of {mutant['file']}: {result['outcome']}, {seconds} s", flush=True)


def print_report(mutants: list[dict[str, Any]]) -> None:
    """Prints the mutants by room, and those that no test has found."""
    gone = json.loads((WORK / "gone.json").read_text())
    tests = {row["test"]: row for row in rows(TESTS) if "test" in row}
    left_out = [name for name, row in tests.items() if has_failed(row)]
    results = {row["mutant"]: row for row in rows(RESULTS) if "mutant" in row}
    reached = {number for row in tests.values() for number in row.get("reached", ())}
    num_mapped = sum("folder" in row for row in rows(TESTS))
    is_mapped = num_mapped == len(CIRCLES) * len(folders_of_tests())
    table, left = collections.defaultdict(collections.Counter), []
    for mutant in mutants:
        number = mutant["number"]
        result = results.get(number)
        if "equivalent" in mutant:
            state = "equivalent"
        elif result is None:
            state = (
                "gone"
                if number in gone
                else "unreached"
                if is_mapped and number not in reached
                else "not run"
            )
        elif result["outcome"] == "survived":
            state = "survived"
        else:
            state = result["circle"]
        for key in (room(mutant["file"]), "all"):
            table[key][state] += 1
            table[key]["time-out"] += result is not None and result["outcome"] == "timed out"
        if state not in ("test", "more", "equivalent"):
            ran = f" {result['ran']} of {result['of']} tests in {result['circle']}" if result else ""
            left.append(f"{number} {state}{ran}: {mutant['file']}:{mutant['line']}")
            left.append(f"    {mutant['source']}  ->  {mutant['mutated']}")
    columns = ("test", "more", "survived", "unreached", "equivalent", "not run", "gone", "time-out")
    print(f"{'':<34}{'mutants':>9}" + "".join(f"{column:>11}" for column in columns))
    for key in sorted(table, key=lambda name: (name == "all", name)):
        counts = table[key]
        total = counts.total() - counts["time-out"]
        print(f"{key:<34}{total:>9}" + "".join(f"{counts[column]:>11}" for column in columns))
    print(*left, f"{len(left_out)} tests fail without a mutant and were left out:", *left_out, sep="\n")


def main() -> None:
    """Does what has not been done yet, and reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run mutants of files whose path starts with this")
    parser.add_argument("--limit", type=int, help="maximum number of mutants to run")
    parser.add_argument("--markers", default="not slow", help="which tests to run, as for pytest's -m")
    parser.add_argument("--report", action="store_true", help="print the results so far")
    arguments = parser.parse_args()
    mutants = json.loads(MUTANTS.read_text())
    if not TREE.exists():
        WORK.mkdir(exist_ok=True)
        copy_sources(mutants)
    mutants = [mutant for mutant in mutants if mutant["file"].startswith(arguments.only)]
    if not arguments.report:
        import_libraries()
        forks = Forks(TREE)
        for circle in CIRCLES:
            map_tests(forks, circle, folders_of_tests(), arguments.markers)
            run_mutants(forks, circle, mutants, arguments.limit)
    print_report(mutants)


if __name__ == "__main__":
    main()
