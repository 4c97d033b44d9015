import os

import pytest

from pipelines.kubeflow.run_folder import RunFolder, StepEnd
from pipelines.kubeflow.steps.plan_step import tidy_runs
from pipelines.root.signs_of_life import SILENT_SECS
from tests.pushed_versions import serve_version

NOW = 1_800_000_000.0  # 2027-01-15; the run was started on 2026-01-02


@pytest.fixture
def begun(killed, root):
    """Returns a function that begins a run whose last step ended some days ago."""

    def make(days, status="running", run="run-1", run_id=killed.run_id):
        root.records.write(killed.changed(run_id=run_id, status=status, kubeflow_run=run))
        folder = RunFolder(root, run)
        folder.write_run(run_id)
        folder.write_step(StepEnd("Transform", 1.0))
        for path in (*folder.path.iterdir(), folder.path):
            age(path, days)
        return folder

    return make


def age(path, days):
    os.utime(path, (NOW - days * 24 * 3600,) * 2)


def test_a_run_that_is_silent_for_long_has_failed(begun, killed, root):
    folder = begun(days=SILENT_SECS / (24 * 3600) + 1)
    assert tidy_runs(root, NOW) == [killed.run_id]
    record = root.records.read(killed.run_id)
    assert record.status == "failed"
    assert "no sign of life from this run for 14 days" in record.reason
    assert folder.read_run_id() == killed.run_id  # a step that is at work yet opens it again
    assert tidy_runs(root, NOW) == []


def test_a_run_whose_steps_end_goes_on_however_long_ago_it_began(begun, killed, root):
    folder = begun(days=SILENT_SECS / (24 * 3600) - 1)
    assert tidy_runs(root, NOW) == []
    assert root.records.read(killed.run_id).status == "running"
    assert folder.read_run_id() == killed.run_id


def test_a_run_whose_step_was_killed_has_failed(begun, killed, root):
    sign = begun(days=1).path / "Trainer.alive"
    sign.touch()
    for minutes, closed in ((14, []), (16, [killed.run_id])):
        age(sign, days=minutes / (24 * 60))
        assert tidy_runs(root, NOW) == closed
    assert root.records.read(killed.run_id).reason.startswith("Trainer: no sign of life")


def test_a_run_without_its_folder_is_as_old_as_its_beginning(begun, killed, root):
    begun(days=0).remove()
    assert tidy_runs(root, NOW) == [killed.run_id]


def test_a_silent_run_that_pushed_has_pushed(begun, killed, root):
    begun(days=100)
    serve_version(root.serving, 5, killed.run_id)
    tidy_runs(root, NOW)
    record = root.records.read(killed.run_id)
    assert (record.status, record.version) == ("pushed", "5")


def test_a_run_that_failed_can_be_tried_again_for_a_while(begun, root):
    kept = begun(days=3, status="failed")
    gone = begun(days=40, status="failed", run="run-0", run_id="20260101-000000")
    assert tidy_runs(root, NOW) == []
    assert kept.path.exists()
    assert not gone.path.exists()


@pytest.mark.parametrize("folder", ["data/a", "findings"])  # copies of data; what steps of old versions kept
@pytest.mark.parametrize(("days", "goes"), [(29, True), (27, False)])
def test_what_no_run_of_late_has_needed_goes(begun, root, folder, days, goes):
    begun(days=0)
    file = root.path / folder / "a.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    age(file.parent, days)
    tidy_runs(root, NOW)
    assert file.exists() is not goes


def test_local_runs_are_left_alone(killed, root):
    assert tidy_runs(root, NOW) == []
    assert root.records.read(killed.run_id) == killed
