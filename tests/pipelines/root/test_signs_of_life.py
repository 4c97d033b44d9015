import os
import threading

import pytest

from pipelines.root import Root
from pipelines.root.history import read_runs
from pipelines.root.signs_of_life import LOST_SECS, SILENT_SECS, folder_of_run, giving_signs
from tests.pushed_versions import serve_version

NOW = 1_800_000_000.0  # 2027-01-15; the run was started on 2026-01-02


@pytest.fixture
def signs(killed, tmp_path):
    """Returns a function that sets the age of the signs of life of a run, by component."""
    root = Root(tmp_path / "root")
    root.records.write(killed.changed(kubeflow_run="team/run-1"))
    folder = folder_of_run(root, "team/run-1")

    def set_ages(run_secs, **ages):
        folder.mkdir(parents=True, exist_ok=True)
        for component, age in ages.items():
            file = folder / f"{component}.alive"
            file.touch()
            os.utime(file, (NOW - age,) * 2)
        os.utime(folder, (NOW - run_secs,) * 2)
        (record,) = read_runs(root, NOW)
        return record

    set_ages.root = root
    return set_ages


def test_a_run_whose_step_was_killed_has_failed_for_whoever_reads_it(signs):
    assert signs(5000, Trainer=LOST_SECS - 1).status == "running"
    record = signs(5000, Trainer=LOST_SECS + 1, Evaluator=4000)
    assert record.status == "failed"
    # 2027-01-15 08:00:00 less 15 minutes and a second
    assert record.reason.startswith("Trainer: no sign of life since 2027-01-15T07:44:59+00:00: it was killed")
    assert "team/run-1" in record.reason
    assert signs.root.records.read(record.run_id).status == "running"  # a reader writes nothing


def test_files_that_vanish_while_they_are_read_are_passed_over(signs):
    folder = folder_of_run(signs.root, "team/run-1")
    folder.mkdir(parents=True)
    for name in ("Trainer.alive", "run.json.partial"):  # a step ends just now
        (folder / name).symlink_to(folder / "gone")
    assert signs(SILENT_SECS - 1).status == "running"
    assert signs(SILENT_SECS + 1).status == "failed"


def test_one_step_at_work_is_enough(signs):
    assert signs(5000, Trainer=LOST_SECS + 1, Evaluator=10).status == "running"


def test_a_run_between_two_steps_may_wait_long_for_its_next_pod(signs):
    assert signs(SILENT_SECS - 1).status == "running"
    record = signs(SILENT_SECS + 1)
    assert record.status == "failed"
    assert record.reason.startswith("no sign of life from this run for 14 days")


def test_signs_of_the_future_are_not_waited_for(signs):
    year = 365 * 86_400
    assert signs(5000, Trainer=-60).status == "running"  # a clock that is a little ahead
    assert signs(5000, Trainer=-year).status == "running"  # other files of the run are recent
    record = signs.root.records.newest().changed(started="2028-01-01T00:00:00+00:00")
    signs.root.records.write(record)
    assert signs(-year, Trainer=-year).status == "failed"


def test_a_run_that_was_killed_after_its_push_has_pushed(signs):
    root = signs.root
    (record,) = root.records.read_all()
    serve_version(root.serving, 5, record.run_id)
    found = signs(5000, Pusher=LOST_SECS + 1)
    assert (found.status, found.version) == ("pushed", "5")
    assert found.reason.startswith("after the push: Pusher: no sign of life")


def test_signs_are_given_until_the_end(tmp_path):
    folder, file = tmp_path / "run-1", tmp_path / "run-1" / "Trainer.alive"
    with giving_signs(folder, "Trainer", every_secs=0.02):
        os.utime(file, (1, 1))
        ended = threading.Event()
        while file.stat().st_mtime == 1:
            assert not ended.wait(0.01)
    assert list(folder.iterdir()) == []


def test_a_root_that_cannot_be_written_to_is_left_to_the_step(tmp_path):
    (tmp_path / "file").touch()
    with giving_signs(tmp_path / "file" / "run-1", "Trainer"):
        pass


@pytest.mark.parametrize("kubeflow_run", ["..", ".", "", "../..", "a/../.."])
def test_the_folder_of_a_run_never_holds_another_one(tmp_path, kubeflow_run):
    root = Root(tmp_path)
    assert folder_of_run(root, kubeflow_run).resolve().parent == root.kubeflow
