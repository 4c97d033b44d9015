"""A pytest plugin that records the outcomes of tests and the mutants they reach."""

import collections
import itertools
import json
import pathlib
from typing import Any

import pytest


def rows(file: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the rows of a file, without the last line of an interrupted run."""
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def append(file: pathlib.Path, row: dict[str, Any]) -> None:
    """Appends a row to a file."""
    with file.open("a") as stream:
        stream.write(json.dumps(row) + "\n")


class Watch:
    """Writes a row for each test; with `tests`, runs only these, in that order."""

    def __init__(self, log: pathlib.Path, reached: pathlib.Path, tests: list[str] | None):
        self._log, self._tests = log, tests
        reached.touch()
        self._reached = reached.open()
        self._of_fixtures: dict[Any, set[int]] = collections.defaultdict(set)
        self._of_test: set[int] = set()
        self._outcome, self._seconds = "passed", 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._tests is not None:
            order = {test: number for number, test in enumerate(self._tests)}
            items[:] = sorted(
                (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            append(self._log, {"test": report.nodeid, "outcome": "failed"})

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        # Only the first of the tests that share a fixture reaches what it does, but all of them depend on it.
        self._of_test |= self._newly_reached()
        try:
            return (yield)
        finally:
            is_shared = fixturedef.scope != "function"
            (self._of_fixtures[fixturedef] if is_shared else self._of_test).update(self._newly_reached())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        self._newly_reached()  # by the collection
        self._of_test, self._outcome, self._seconds = set(), "passed", 0.0
        append(self._log, {"begins": item.nodeid})
        try:
            return (yield)
        finally:
            reached = self._of_test | self._newly_reached()
            for definition in itertools.chain(*item._fixtureinfo.name2fixturedefs.values()):  # noqa: SLF001
                reached |= self._of_fixtures[definition]
            row = {"test": item.nodeid, "outcome": self._outcome, "seconds": round(self._seconds, 2)}
            append(self._log, {**row, "reached": sorted(reached)})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        if report.failed:
            self._outcome = "timed out" if "Failed: Timeout" in str(report.longrepr) else "failed"
        elif report.skipped and self._outcome == "passed":
            self._outcome = "skipped"

    def _newly_reached(self) -> set[int]:
        return {int(number) for number in self._reached.read().split()}
