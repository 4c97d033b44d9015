import json
from dataclasses import asdict

import pytest

from components.pusher.provenance import Provenance
from pipelines.kubeflow.run_folder import RunFolder, StepEnd
from pipelines.kubeflow.steps.kept_findings import KeptFindings
from pipelines.kubeflow.steps.record_steps import close_known_run, end_run, record_run
from pipelines.root import Root
from pipelines.root.records import HeldModel, RunOutcome
from tests.pushed_versions import write_version


@pytest.fixture
def begun(killed, tmp_path):
    """The root of a run that the step Plan has begun, and its folder."""
    root = tmp_path / "root"
    Root(root).records.write(killed.changed(kubeflow_run="run-1"))
    folder = RunFolder(Root(root), "run-1")
    folder.write_run(killed.run_id)
    return root, folder


def said(root, *notes):
    findings = KeptFindings()
    for note in notes:
        findings.note(note)
    return findings.write(Root(root))


def test_the_record_has_all_that_the_steps_have_found(begun):
    root, folder = begun
    folder.write_step(StepEnd("Trainer", 2.5))
    record = record_run(
        Root(root),
        "run-1",
        {"CsvExampleGen": said(root, "one"), "Trainer": said(root, "two", "three")},
        json.dumps(asdict(RunOutcome("not_blessed", "too bad"))),
    )
    assert record.status == "not_blessed"
    assert record.reason == "too bad"
    assert record.notes == ("one", "two", "three")
    assert [(one.name, one.status, one.elapsed_secs) for one in record.components] == [
        ("CsvExampleGen", "cached", 0.0),
        ("Trainer", "finished", 2.5),
    ]
    assert Root(root).records.read(record.run_id) == record
    assert "too bad" in (root / "runs" / f"{record.run_id}.html").read_text()


def test_a_held_model_is_recorded_with_its_doubts_and_superseded_by_the_next_push(begun, killed):
    root, _ = begun
    findings = KeptFindings()
    findings.add_verdict({"auc": 0.8}, {}, {}, doubts=("the labels",))
    held = HeldModel("kept/a/model", "kept/a/model/Format-Serving")
    record = record_run(
        Root(root),
        "run-1",
        {"Evaluator": findings.write(Root(root))},
        json.dumps(asdict(RunOutcome("held", "the labels", held=held))),
    )
    assert (record.status, record.held, record.doubts) == ("held", held, ("the labels",))
    assert end_run(Root(root), "run-1") == record
    later = killed.changed(run_id="20260103-000000", kubeflow_run="run-2")
    Root(root).records.write(later)
    RunFolder(Root(root), "run-2").write_run(later.run_id)
    outcome = json.dumps(asdict(RunOutcome("pushed", version="5")))
    for _ in range(2):  # the step may be tried again
        pushed = record_run(Root(root), "run-2", {}, outcome)
        assert pushed.notes == (f"the held model of run {record.run_id} is superseded by this one",)
        Root(root).records.write(pushed.changed(notes=()))
    assert Root(root).records.read(record.run_id).decision.by == later.run_id


def test_a_run_that_was_recorded_stays_as_it_is(begun):
    root, folder = begun
    record = record_run(
        Root(root), "run-1", {}, json.dumps(asdict(RunOutcome("unchanged", "same")))
    )
    assert end_run(Root(root), "run-1") == record
    assert not folder.path.exists()


def test_a_step_that_records_twice_writes_the_same(begun):
    root, folder = begun
    recorder = Root(root).records
    recorder.write(recorder.read(folder.read_run_id()).changed(notes=("of the plan",)))
    folder.write_run(folder.read_run_id(), num_notes=1)
    given = {"CsvExampleGen": said(root, "one"), "Trainer": said(root, "two")}
    outcome = json.dumps(asdict(RunOutcome("pushed", version="5")))
    first = record_run(Root(root), "run-1", given, outcome)
    assert first.notes == ("of the plan", "one", "two")
    recorder.write(first.changed(status="running", finished=None))  # killed before its end
    again = record_run(Root(root), "run-1", given, outcome)
    assert again.notes == first.notes
    assert again.components == first.components
    assert again.status == "pushed"


def test_a_run_that_failed_can_be_tried_again(begun):
    root, folder = begun
    folder.write_run(folder.read_run_id(), num_notes=0)
    findings = KeptFindings()
    findings.note("found before")
    folder.write_step(StepEnd("Trainer", 0.5, "it broke", True, findings.as_json()))
    assert end_run(Root(root), "run-1").status == "failed"
    assert end_run(Root(root), "run-1").status == "failed"  # tried again, as it was killed
    folder.write_step(StepEnd("Trainer", 2.5))
    outcome = json.dumps(asdict(RunOutcome("pushed", version="5")))
    record = record_run(Root(root), "run-1", {"Trainer": said(root, "two")}, outcome)
    assert (record.status, record.reason, record.is_bad_input) == ("pushed", None, False)
    assert record.notes == ("two",)
    assert [(one.name, one.elapsed_secs) for one in record.components] == [("Trainer", 2.5)]
    assert end_run(Root(root), "run-1") == record
    assert not folder.path.exists()


def test_a_run_that_is_tried_again_on_kubeflow_is_another_openlineage_run(begun, killed):
    root, folder = begun
    config = {**killed.config, "lineage": {"openlineage": "file"}}
    Root(root).records.write(killed.changed(kubeflow_run="run-1", config=config))
    folder.write_step(StepEnd("Trainer", 0.5, "it broke"))
    end_run(Root(root), "run-1")
    folder.write_step(StepEnd("Trainer", 2.5))
    outcome = json.dumps(asdict(RunOutcome("pushed", version="5")))
    for _ in range(2):  # the second time, only `Record` is tried again
        assert record_run(Root(root), "run-1", {"Trainer": said(root)}, outcome).attempt == 2
    events = [json.loads(line) for line in Root(root).openlineage.read_text().splitlines()]
    of_run = [event for event in events if event["job"]["name"] == "data"]
    ends = [(event["eventType"], event["run"]["runId"]) for event in of_run]
    assert [kind for kind, _ in ends] == ["FAIL", "START", "COMPLETE", "COMPLETE"]
    assert ends[0][1] != ends[1][1] == ends[2][1] == ends[3][1]


def test_findings_that_are_gone_are_said_and_leave_the_record_alone(begun):
    root, folder = begun
    given = {"CsvExampleGen": said(root, "one"), "Trainer": said(root, "two")}
    (root / "findings" / f"{given['Trainer']}.json").unlink()
    with pytest.raises(LookupError, match=r"Remove all of .*findings and run again"):
        record_run(Root(root), "run-1", given, json.dumps(asdict(RunOutcome("unchanged"))))
    record = Root(root).records.read(folder.read_run_id())
    assert (record.status, record.notes, record.components) == ("running", (), ())


def test_a_step_that_failed_says_why(begun):
    root, folder = begun
    folder.write_step(StepEnd("Transform", 1.5))
    findings = KeptFindings()
    findings.note("found before")
    folder.write_step(StepEnd("Trainer", 0.5, "it broke", True, findings.as_json()))
    record = end_run(Root(root), "run-1")
    assert record.status == "failed"
    assert record.reason == "Trainer: it broke"
    assert record.is_bad_input
    assert record.notes == ("found before",)
    assert {one.name: one.status for one in record.components} == {
        "Transform": "finished",
        "Trainer": "failed",
    }


def test_a_component_whose_check_failed_has_finished(begun):
    root, folder = begun
    folder.write_step(StepEnd("ExampleValidator", 0.5, "odd data", True, has_outputs=True))
    record = end_run(Root(root), "run-1")
    assert record.reason == "ExampleValidator: odd data"
    assert [(one.name, one.status) for one in record.components] == [
        ("ExampleValidator", "finished")  # as `schema accept` wants it
    ]


def test_a_step_that_was_killed_says_nothing(begun):
    root, _ = begun
    record = end_run(Root(root), "run-1")
    assert record.status == "failed"
    assert "out of memory" in record.reason
    assert "run-1" in record.reason


def test_a_run_that_failed_after_its_push_has_pushed(begun):
    root, folder = begun
    version = root / "serving" / "5"
    version.mkdir(parents=True)
    run_id = folder.read_run_id()
    write_version(Provenance(run_id, str(root / "m")), str(version), str(root / "serving"))
    folder.write_step(StepEnd("Pusher", 0.5, "it broke"))
    record = end_run(Root(root), "run-1")
    assert record.status == "pushed"
    assert record.version == "5"
    assert record.reason == "after the push: Pusher: it broke"


def test_a_run_that_did_not_begin_has_no_record(tmp_path):
    assert end_run(Root(tmp_path), "run-1") is None
    with pytest.raises(LookupError, match=r"no run run-1 in .*every step mounts.*is over"):
        record_run(Root(tmp_path), "run-1", {}, "{}")


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("FAILED", "failed"),
        ("CANCELED", "interrupted"),
        ("RUNNING", "running"),
        ("SUCCEEDED", "running"),
    ],
)
def test_a_run_that_has_ended_on_kubeflow_is_closed_by_whoever_knows(begun, state, status):
    root, folder = begun
    close_known_run(Root(root), "run-1", state)
    assert Root(root).records.read(folder.read_run_id()).status == status
    close_known_run(Root(root), "run-2", state)  # another root's


def test_what_kubeflow_knows_changes_no_record_that_has_ended(begun):
    root, _ = begun
    record = record_run(Root(root), "run-1", {}, json.dumps(asdict(RunOutcome("unchanged"))))
    close_known_run(Root(root), "run-1", "FAILED")
    assert Root(root).records.read(record.run_id) == record


def test_a_run_stopped_by_a_signal_is_interrupted(begun):
    root, _ = begun
    record = end_run(Root(root), "run-1", RunOutcome("interrupted", "stopped by a signal"))
    assert record.status == "interrupted"


@pytest.mark.parametrize("is_recorded", [True, False])
def test_what_the_rules_do_not_keep_is_removed_at_the_end(begun, is_recorded, killed):
    root, folder = begun
    records = Root(root).records
    for number in (1, 2, 3):
        run_id = f"2025010{number}-000000"
        records.write(
            killed.changed(run_id=run_id, status="not_blessed", kubeflow_run=f"old-{number}")
        )
        (root / "runs" / f"{run_id}.html").touch()
    running = killed.changed(run_id="20250104-000000", kubeflow_run="also-running")
    records.write(running)
    begun_record = records.read(folder.read_run_id())
    retention = {"retention": {"runs": 2}}
    records.write(begun_record.changed(config={**begun_record.config, **retention}))
    if is_recorded:
        record_run(
            Root(root), "run-1", {}, json.dumps(asdict(RunOutcome("not_blessed", "too bad")))
        )
    end_run(Root(root), "run-1")
    # The newest two; and, where this run came to no verdict, the newest that did.
    kept = [running.run_id, killed.run_id]
    assert [one.run_id for one in records.read_all()] == (
        kept if is_recorded else ["20250103-000000", *kept]
    )
    index = (root / "runs" / "index.html").read_text()
    assert "20250101-000000" not in index
