"""Running contestants and keeping their results; no contestant computes anything here."""

import json
import subprocess
import sys

import pytest

from benchmarks import speed_runs
from benchmarks.speed_works import OURS, REFERENCE, Contestant, Work

WORK = Work(
    "x",
    "a work",
    "predictor",
    "call",
    (Contestant(OURS, "ours"), Contestant(REFERENCE, "reference", work="one_row", count=7)),
    {},
    count=50,
)


@pytest.fixture
def runs(monkeypatch):
    """Returns the calls of `run_contestant`, whose answers are numbered."""
    calls = []

    def run_contestant(work, contestant, pythons, *options):
        calls.append((work, contestant.name, pythons, options))
        check = {"names": ["loss"]} if "--check" in options else None
        return {"secs": len(calls), "processor_secs": 2 * len(calls), "check": check}

    monkeypatch.setattr(speed_runs, "run_contestant", run_contestant)
    return calls


def test_contestants_alternate_and_are_checked_once(runs):
    measured = speed_runs.measure(WORK, 2, "pythons")
    assert runs == [
        ("predictor", OURS, "pythons", ("--count", "50", "--check")),
        ("one_row", REFERENCE, "pythons", ("--count", "7", "--check")),
        ("predictor", OURS, "pythons", ("--count", "50")),
        ("one_row", REFERENCE, "pythons", ("--count", "7")),
    ]
    assert [(run.contestant, run.secs) for run in measured] == [
        (OURS, 1),
        (REFERENCE, 2),
        (OURS, 3),
        (REFERENCE, 4),
    ]


def test_other_work_ends_it_before_the_second_round(monkeypatch):
    answers = iter(range(10))

    def run_contestant(*_):
        return {"secs": 1, "processor_secs": 1, "check": {"rows": next(answers)}}

    monkeypatch.setattr(speed_runs, "run_contestant", run_contestant)
    with pytest.raises(SystemExit, match=r"\(x\) Not the same work\. rows: 0 of estimator_core, 1 of"):
        speed_runs.measure(WORK, 2, {})
    assert next(answers) == 2


def test_a_contestant_that_fails_ends_it_with_its_log(capfd):
    with pytest.raises(SystemExit, match=r"exit code 2 of: .*contestant\.py no_such_work ours"):
        speed_runs.run_contestant("no_such_work", Contestant(OURS, "ours"), {})
    assert "invalid choice: 'no_such_work'" in capfd.readouterr().err


def test_each_contestant_has_the_python_of_its_environment(monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command[0])
        return subprocess.CompletedProcess(command, 0, stdout="log\n{}\n")

    monkeypatch.setattr(speed_runs.subprocess, "run", run)
    pythons = {"reference": "python2.15", "plain": "python_plain"}
    for contestant in (
        Contestant(OURS, "ours"),
        Contestant(REFERENCE, "reference"),
        Contestant(OURS, "ours", environment="plain"),
    ):
        assert speed_runs.run_contestant("import", contestant, pythons) == {}
    assert commands == [sys.executable, "python2.15", "python_plain"]


def test_results_are_kept_by_work(monkeypatch, tmp_path):
    monkeypatch.setattr(speed_runs, "RESULTS", tmp_path / "speed.json")
    assert speed_runs.load_results() == {}
    speed_runs.save("x", [1])
    speed_runs.save("y", [2])
    speed_runs.save("x", [3])
    results = speed_runs.load_results()
    assert {key: result["measured"] for key, result in results.items()} == {"x": [3], "y": [2]}
    assert json.loads((tmp_path / "speed.json").read_text()) == results


def test_the_conditions_are_those_of_all_works():
    own = {"contestant": OURS, "secs": 1, "processor_secs": 1}
    other = {**own, "contestant": REFERENCE}
    results = {
        "x": {"date": "2026-01-02 03:04", "load": 4.5, "measured": [own, other] * 3},
        "a": {"date": "2026-01-01 00:00", "load": 0.5, "measured": [own] * 5},
    }
    works = [WORK, Work("a", "", "", "", WORK.contestants, {}), Work("b", "", "", "", (), {})]
    text = speed_runs.conditions(results, works)
    assert text.startswith("Measured 2026-01-01 00:00 to 2026-01-02 03:04 UTC on ")
    assert text.endswith("under a load of 0.5 to 4.5; 3 to 5 rounds.")


def test_the_machine_is_its_cores_and_its_processor():
    text = "processor\t: 0\nmodel name\t: Some Processor: fast\n\nmodel name\t: Some Processor: fast\n"
    assert speed_runs.machine(text).endswith(" cores, Some Processor: fast")
    assert " cores, " in speed_runs.machine("")
