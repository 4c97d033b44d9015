import pytest

from components.example_validator.served_statistics import ServedStatisticsStrategy
from tests.components.served_runs import ServedRuns


@pytest.fixture
def root(tmp_path):
    return ServedRuns(tmp_path, ServedStatisticsStrategy, "statistics")


def of(run):
    return [("ExampleStatistics", f"statistics-{run}")]


def test_the_statistics_are_of_the_run_that_made_what_is_served(root):
    assert root.resolve() == []
    first, second, _ = map(root.run, ("first", "second", "third"))
    assert root.resolve() == []
    root.push(first, 5)
    assert root.resolve() == of("first")
    root.push(second, 6)
    assert root.resolve() == of("second")


def test_an_accepted_run_goes_before_and_statistics_that_were_removed_are_none(root):
    root.push(root.run("first"), 5)
    root.run("second")
    assert root.resolve(accepted_run="second") == of("second")
    assert root.resolve(accepted_run="unknown") == []
    assert root.resolve(accepted_run="") == of("first")
    (root.folder / "statistics-first").rmdir()
    assert root.resolve() == []
