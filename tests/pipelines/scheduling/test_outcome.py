import json

import pytest

from pipelines.root import Root
from pipelines.scheduling.outcome import Outcome, can_resume, outcome_of
from pipelines.scheduling.ticks import Tick

TICK = Tick("trips", "20260131T100000Z", "2026-01-31T10:00:00+00:00", starts=1)


@pytest.fixture
def stdout(tmp_path):
    file = tmp_path / "run.out"

    def write(**line):
        file.write_text("noise\n" + json.dumps({"run_id": None, "version": None, **line}) + "\n")
        return file

    return write


def test_a_verdict_is_read_from_stdout_and_the_record(root, stdout, record):
    record("run-1", status="pushed", notes=("data: span 8", "anomaly: column 'miles': drift"))
    file = stdout(run_id="run-1", status="pushed", version="3")
    assert outcome_of(Root(root), TICK, file) == Outcome(
        "ended", "pushed", "run-1", None, "3", True
    )
    record("run-2", status="not_blessed")
    file = stdout(run_id="run-2", status="not_blessed", reason="worse")
    assert outcome_of(Root(root), TICK, file) == Outcome("ended", "not_blessed", "run-2", "worse")


def test_a_pipeline_without_a_pusher_has_not_failed(root, stdout, record):
    record("run-1", status="finished")
    found = outcome_of(Root(root), TICK, stdout(run_id="run-1", status="finished"))
    assert found == Outcome("ended", "finished", "run-1")


def test_bad_input_with_and_without_a_record(root, stdout, record):
    file = stdout(status="failed", error="bad_input", reason="no such column")
    assert outcome_of(Root(root), TICK, file).ending == "bad_input"
    record("run-1", status="failed", is_bad_input=True)
    assert (
        outcome_of(Root(root), TICK, stdout(run_id="run-1", status="failed")).ending == "bad_input"
    )
    record("run-2", status="failed")
    assert outcome_of(Root(root), TICK, stdout(run_id="run-2", status="failed")).ending == "failed"


def test_another_run_had_the_root(root, stdout):
    file = stdout(status="failed", error="root_busy", reason="Another run is going on")
    assert outcome_of(Root(root), TICK, file) == Outcome("busy", reason="Another run is going on")


@pytest.mark.parametrize("text", ["", "noise\n", '{"status": "pushed", "run_id": "r', "[1]\n"])
def test_a_run_that_was_killed(root, tmp_path, record, text):
    file = tmp_path / "run.out"
    file.write_text(text)
    assert outcome_of(Root(root), TICK, file).ending == "killed"
    assert outcome_of(Root(root), TICK, tmp_path / "none").ending == "killed"
    record("run-1", status="running", scheduled_by=TICK.id)
    found = outcome_of(Root(root), TICK, file)
    assert (found.ending, found.run_id) == ("killed", "run-1")


def test_a_run_that_was_killed_when_its_record_was_complete(root, tmp_path, record):
    record("run-1", status="pushed", version="4", scheduled_by=TICK.id)
    record("run-2", status="pushed", version="5", scheduled_by="trips/another")
    found = outcome_of(Root(root), TICK, tmp_path / "none")
    assert found == Outcome("ended", "pushed", "run-1", None, "4")


def test_a_run_that_was_interrupted(root, stdout, record):
    record("run-1", status="interrupted", scheduled_by=TICK.id)
    assert (
        outcome_of(Root(root), TICK, stdout(run_id="run-1", status="interrupted")).ending
        == "killed"
    )


def test_only_the_newest_run_is_resumed(root, record):
    assert not can_resume(Root(root), TICK)
    record("20260131-100000", status="interrupted", scheduled_by=TICK.id)
    assert can_resume(Root(root), TICK)
    record("20260131-110000", status="interrupted")
    assert not can_resume(Root(root), TICK)
