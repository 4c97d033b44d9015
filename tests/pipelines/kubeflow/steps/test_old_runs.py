import os

import pytest

from components.pusher.provenance import Provenance
from pipelines.kubeflow.run_folder import RunFolder, StepEnd
from pipelines.kubeflow.steps.plan_step import tidy_runs
from pipelines.root import Root
from pipelines.root.signs_of_life import SILENT_SECS
from tests.pushed_versions import write_version

NOW = 1_800_000_000.0  # 2027-01-15; the run was started on 2026-01-02
DAY = 24 * 3600


@pytest.fixture
def begun(killed, tmp_path):
    """Returns a function that begins a run whose last step ended some time ago."""
    root = tmp_path / "root"

    def make(days, status="running", run="run-1", run_id=killed.run_id):
        Root(root).records.write(killed.changed(run_id=run_id, status=status, kubeflow_run=run))
        folder = RunFolder(Root(root), run)
        folder.write_run(run_id)
        folder.write_step(StepEnd("Transform", 1.0))
        for path in (*folder.path.iterdir(), folder.path):
            os.utime(path, (NOW - days * DAY,) * 2)
        return root, folder

    return make


def test_a_run_that_is_silent_for_long_has_failed(begun, killed):
    root, folder = begun(days=SILENT_SECS / DAY + 1)
    assert tidy_runs(Root(root), NOW) == [killed.run_id]
    record = Root(root).records.read(killed.run_id)
    assert record.status == "failed"
    assert "no sign of life from this run for 14 days" in record.reason
    assert folder.read_run_id() == killed.run_id  # a step that is at work yet opens it again
    assert tidy_runs(Root(root), NOW) == []


def test_a_run_whose_steps_end_goes_on_however_long_ago_it_began(begun, killed):
    root, folder = begun(days=SILENT_SECS / DAY - 1)
    assert tidy_runs(Root(root), NOW) == []
    assert Root(root).records.read(killed.run_id).status == "running"
    assert folder.read_run_id() == killed.run_id


def test_a_run_whose_step_was_killed_has_failed(begun, killed):
    root, folder = begun(days=1)
    sign = folder.path / "Trainer.alive"
    sign.touch()
    for secs, closed in ((14 * 60, []), (16 * 60, [killed.run_id])):
        os.utime(sign, (NOW - secs,) * 2)
        assert tidy_runs(Root(root), NOW) == closed
    assert Root(root).records.read(killed.run_id).reason.startswith("Trainer: no sign of life")


def test_a_run_without_its_folder_is_as_old_as_its_beginning(begun, killed):
    root, folder = begun(days=0)
    folder.remove()
    assert tidy_runs(Root(root), NOW) == [killed.run_id]


def test_a_silent_run_that_pushed_has_pushed(begun, killed):
    root, _ = begun(days=100)
    version = root / "serving" / "5"
    version.mkdir(parents=True)
    write_version(Provenance(killed.run_id, str(root)), str(version), str(root / "serving"))
    tidy_runs(Root(root), NOW)
    record = Root(root).records.read(killed.run_id)
    assert (record.status, record.version) == ("pushed", "5")


def test_a_run_that_failed_can_be_tried_again_for_a_while(begun):
    root, kept = begun(days=3, status="failed")
    _, gone = begun(days=40, status="failed", run="run-0", run_id="20260101-000000")
    assert tidy_runs(Root(root), NOW) == []
    assert kept.path.exists()
    assert not gone.path.exists()


def test_copies_of_data_that_no_run_of_late_has_needed_go(begun):
    root, _ = begun(days=0)
    for name, days in (("old", 29), ("new", 27)):
        file = root / "data" / name / "data-00000.csv"
        file.parent.mkdir(parents=True)
        file.write_text("x")
        os.utime(file.parent, (NOW - days * DAY,) * 2)
    tidy_runs(Root(root), NOW)
    assert [path.name for path in (root / "data").iterdir()] == ["new"]


@pytest.mark.parametrize(("days", "goes"), [(29, True), (27, False)])
def test_what_steps_of_former_versions_kept_goes_when_no_such_run_goes_on(begun, days, goes):
    root, _ = begun(days=0)
    file = root / "findings" / "a.json"
    file.parent.mkdir()
    file.write_text("{}")
    os.utime(file.parent, (NOW - days * DAY,) * 2)
    tidy_runs(Root(root), NOW)
    assert file.exists() is not goes


def test_local_runs_are_left_alone(killed, tmp_path):
    assert tidy_runs(Root(tmp_path / "root"), NOW) == []
    assert Root(tmp_path / "root").records.read(killed.run_id) == killed
