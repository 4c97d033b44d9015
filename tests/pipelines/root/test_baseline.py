import json

import pytest

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.baseline import find_baseline_model, find_baseline_statistics, statistics_folder
from pipelines.root.records import ComponentRecord
from tests.pipelines.run_records import make_record


def put(root, version, run_id, model=None):
    """Puts a version there, pushed by a run."""
    model = model or root.kept_artifact(run_id, "model")
    extra = root.serving / str(version) / "assets.extra"
    extra.mkdir(parents=True)
    (extra.parent / "saved_model.pb").touch()
    pushed = {"pipeline_run_id": run_id, "model": f"../{model.relative_to(root.path)}"}
    (extra / "push.json").write_text(json.dumps(pushed))


def keep(root, run_id):
    """Leaves what a run on Kubeflow keeps in the root."""
    for name in ("model", "statistics"):
        root.kept_artifact(run_id, name).mkdir(parents=True)


def record(root, run_id, status="finished", step="abc"):
    """Leaves the record of a run, and its statistics."""
    component = ComponentRecord("StatisticsGen", status, 1.0, step=step)
    root.records.write(make_record(run_id, components=(component,)))


def test_nothing_served_gives_no_baseline(root):
    assert find_baseline_model(root, "run-new", required=True) is None
    assert find_baseline_statistics(root, "run-new") is None


def test_the_model_that_serves_and_its_statistics_are_found(root):
    for version, run_id in ((5, "run-a"), (7, "run-b")):
        keep(root, run_id)
        put(root, version, run_id)
    assert find_baseline_model(root, "run-new", required=True) == root.kept_artifact("run-b", "model")
    assert find_baseline_statistics(root, "run-new") == root.kept_artifact("run-b", "statistics")
    (root.serving / "7").rename(root.path / "7")  # a rollback
    assert find_baseline_model(root, "run-new", required=True) == root.kept_artifact("run-a", "model")


def test_a_root_can_be_moved(root, tmp_path):
    keep(root, "run-a")
    put(root, 5, "run-a")
    root.path.rename(tmp_path / "moved")
    moved = Root(tmp_path / "moved")
    assert find_baseline_model(moved, "run-new", required=True) == moved.kept_artifact("run-a", "model")


@pytest.mark.parametrize("place", ["Trainer/abc/model", "Trainer/model/3"])
def test_the_model_of_a_step_or_of_an_earlier_version_of_this_program(root, place):
    model = root.artifacts / place
    model.mkdir(parents=True)
    put(root, 5, "run-a", model)
    assert find_baseline_model(root, "run-new", required=True) == model
    assert find_baseline_statistics(root, "run-new") is None


def test_the_statistics_are_those_of_the_step_that_the_run_used(root):
    record(root, "run-a")
    put(root, 5, "run-a")
    assert find_baseline_statistics(root, "run-new") is None  # they are gone
    folder = root.artifacts / "StatisticsGen" / "abc" / "statistics"
    folder.mkdir(parents=True)
    assert find_baseline_statistics(root, "run-new") == statistics_folder(root, "run-a") == folder
    record(root, "run-a", status="failed")
    assert statistics_folder(root, "run-a") == root.kept_artifact("run-a", "statistics")
    record(root, "run-a", step="")  # a run on Kubeflow, or of an earlier version
    assert statistics_folder(root, "run-a") == root.kept_artifact("run-a", "statistics")


def test_a_version_whose_model_is_not_known(root):
    put(root, 5, "run-a")
    assert find_baseline_model(root, "run-new", required=False) is None
    with pytest.raises(BadInputError, match=r"Version 5 in .*default_checks = false"):
        find_baseline_model(root, "run-new", required=True)


def test_a_model_outside_of_the_root_is_not_used(root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    put(root, 5, "run-a", root.path / ".." / "elsewhere")
    assert find_baseline_model(root, "run-new", required=False) is None


def test_an_accepted_run_takes_the_place_of_what_serves(root):
    for run_id in ("run-a", "run-b"):
        keep(root, run_id)
    put(root, 5, "run-a")
    assert find_baseline_statistics(root, "run-new", "run-b") == root.kept_artifact("run-b", "statistics")
    assert find_baseline_statistics(root, "run-new", "run-c") is None
