import json

import pytest

from pipelines.kubeflow.run_folder import StepEnd
from pipelines.kubeflow.steps.record_steps import close_known_run, end_run, record_run
from pipelines.root import Root
from pipelines.root.records import RunOutcome
from tests.pipelines.kubeflow.on_kubeflow import FAILING, WARNING, begin, make, planned
from tests.pushed_versions import serve_version


def planned_by(record, *components, **fields):
    return [planned(component, record.run_id, **fields) for component in components]


@pytest.fixture
def begun(killed, root):
    """A run that the step Plan has begun; its folder, and its steps: one is reused, two are new."""
    steps = [
        planned("Gen", "20260101-000000", check=WARNING, reason="same as before"),
        *planned_by(killed, "Validator", "Trainer", check=WARNING),
    ]
    return begin(root, killed, *steps), steps


def test_the_record_has_all_steps_and_what_their_checks_find(root, begun):
    folder, (gen, validator, trainer) = begun
    make(root, gen, "a")
    make(root, validator, "b", "c")
    make(root, trainer)
    folder.write_step(StepEnd("Validator", 0.5, reused=True))
    folder.write_step(StepEnd("Trainer", 2.5))
    record = record_run(root, "run-1")
    assert record.status == "finished"
    assert [note.rpartition("column ")[2] for note in record.notes] == ["'a': odd.", "'b': odd.", "'c': odd."]
    assert [(one.name, one.status, one.elapsed_secs, one.reason) for one in record.components] == [
        ("Gen", "cached", 0.0, "same as before"),  # KFP's cache had it
        ("Validator", "cached", 0.5, "it is new"),  # another run has made it meanwhile
        ("Trainer", "finished", 2.5, "it is new"),
    ]
    assert record.step("Trainer") == trainer.plan.name
    assert root.records.read(record.run_id) == record
    assert "finished" in (root.runs / f"{record.run_id}.html").read_text()


def test_a_step_that_records_twice_writes_the_same(root, killed):
    killed = killed.changed(notes=("of the plan",))
    (step,) = planned_by(killed, "Trainer", check=WARNING)
    folder = begin(root, killed, step)
    make(root, step, "a")
    folder.write_step(StepEnd("Trainer", 2.5))
    first = record_run(root, "run-1")
    assert len(first.notes) == 2
    root.records.write(first.changed(status="running", finished=None))  # killed before its end
    again = record_run(root, "run-1")
    assert (again.notes, again.components) == (first.notes, first.components)


def test_a_run_that_failed_can_be_tried_again(root, killed):
    (step,) = planned_by(killed, "Trainer", check=WARNING)
    folder = begin(root, killed, step)
    folder.write_step(StepEnd("Trainer", 0.5, "it broke", True))
    assert end_run(root, "run-1").status == "failed"
    assert end_run(root, "run-1").status == "failed"  # tried again, as it was killed
    make(root, step, "a")
    folder.write_step(StepEnd("Trainer", 2.5))
    record = record_run(root, "run-1")
    assert (record.status, record.reason, record.is_bad_input) == ("finished", None, False)
    assert len(record.notes) == 1
    assert [(one.name, one.elapsed_secs) for one in record.components] == [("Trainer", 2.5)]
    assert end_run(root, "run-1") == record
    assert not folder.path.exists()


def test_a_run_that_is_tried_again_on_kubeflow_is_another_openlineage_run(root, killed):
    config = {**killed.config, "lineage": {"openlineage": "file"}}
    killed = killed.changed(config=config)
    (step,) = planned_by(killed, "Trainer")
    folder = begin(root, killed, step)
    folder.write_step(StepEnd("Trainer", 0.5, "it broke"))
    end_run(root, "run-1")
    make(root, step)
    folder.write_step(StepEnd("Trainer", 2.5))
    for _ in range(2):  # the second time, only `Record` is tried again
        assert record_run(root, "run-1").attempt == 2
    events = [json.loads(line) for line in root.openlineage.read_text().splitlines()]
    of_run = [event for event in events if event["job"]["name"] == "data"]
    ends = [(event["eventType"], event["run"]["runId"]) for event in of_run]
    assert [kind for kind, _ in ends] == ["FAIL", "START", "COMPLETE", "COMPLETE"]
    assert ends[0][1] != ends[1][1] == ends[2][1] == ends[3][1]


def test_a_step_that_failed_says_why(root, begun):
    folder, (gen, validator, _) = begun
    make(root, gen, "a")
    make(root, validator)
    folder.write_step(StepEnd("Validator", 1.5))
    folder.write_step(StepEnd("Trainer", 0.5, "it broke", True))
    record = end_run(root, "run-1")
    assert record.status == "failed"
    assert record.reason == "Trainer: it broke"
    assert record.is_bad_input
    assert len(record.notes) == 1
    statuses = {one.name: one.status for one in record.components}
    assert statuses == {"Gen": "cached", "Validator": "finished", "Trainer": "failed"}


def test_a_component_whose_check_failed_has_finished_and_those_after_it_were_not_reached(root, killed):
    validator, trainer = planned_by(killed, "Validator", "Trainer", check=FAILING)
    folder = begin(root, killed, validator, trainer)
    make(root, validator, "a")
    make(root, trainer)
    folder.write_step(StepEnd("Validator", 0.5, "odd data", True))
    record = end_run(root, "run-1")
    assert record.reason == "Validator: odd data"
    assert len(record.notes) == 1
    # As `schema accept` wants it.
    assert [(one.name, one.status) for one in record.components] == [("Validator", "finished")]


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (None, "failed", ("out of memory", "run-1")),  # a step that was killed says nothing
        (RunOutcome("interrupted", "stopped by a signal"), "interrupted", ("stopped by a signal",)),
    ],
)
def test_a_run_whose_steps_say_nothing(root, outcome, status, reason):
    record = end_run(root, "run-1", outcome)
    assert record.status == status
    assert all(part in record.reason for part in reason)


def test_a_run_that_failed_after_its_push_has_pushed(root, begun):
    folder, _ = begun
    serve_version(root.serving, 5, folder.read_run_id())
    folder.write_step(StepEnd("Pusher", 0.5, "it broke"))
    record = end_run(root, "run-1")
    assert record.status == "pushed"
    assert record.version == "5"
    assert record.reason == "after the push: Pusher: it broke"


def test_a_run_that_did_not_begin_has_no_record(tmp_path):
    assert end_run(Root(tmp_path), "run-1") is None
    with pytest.raises(LookupError, match=r"no run run-1 in .*every step mounts.*has ended"):
        record_run(Root(tmp_path), "run-1")


@pytest.mark.parametrize(
    ("state", "status"),
    [("FAILED", "failed"), ("CANCELED", "interrupted"), ("RUNNING", "running"), ("SUCCEEDED", "running")],
)
def test_a_run_that_has_ended_on_kubeflow_is_closed_by_whoever_knows(root, begun, state, status):
    folder, _ = begun
    close_known_run(root, "run-1", state)
    assert root.records.read(folder.read_run_id()).status == status
    close_known_run(root, "run-2", state)  # another root's


@pytest.mark.usefixtures("begun")
def test_what_kubeflow_knows_changes_no_record_that_has_ended(root):
    record = record_run(root, "run-1")
    close_known_run(root, "run-1", "FAILED")
    assert root.records.read(record.run_id) == record


@pytest.mark.parametrize("is_recorded", [True, False])
def test_what_the_rules_do_not_keep_is_removed_at_the_end(root, begun, is_recorded, killed):
    folder, _ = begun
    records = root.records
    for number in (1, 2, 3):
        run_id = f"2025010{number}-000000"
        records.write(killed.changed(run_id=run_id, status="not_blessed", kubeflow_run=f"old-{number}"))
        (root.runs / f"{run_id}.html").touch()
    running = killed.changed(run_id="20250104-000000", kubeflow_run="also-running")
    records.write(running)
    begun_record = records.read(folder.read_run_id())
    retention = {"retention": {"runs": 2}}
    records.write(begun_record.changed(config={**begun_record.config, **retention}))
    if is_recorded:
        record_run(root, "run-1")
    end_run(root, "run-1")
    # The newest two; and, where this run came to no verdict, the newest that did.
    kept = [running.run_id, killed.run_id]
    assert [one.run_id for one in records.read_all()] == (kept if is_recorded else ["20250103-000000", *kept])
    index = (root.runs / "index.html").read_text()
    assert "20250101-000000" not in index
