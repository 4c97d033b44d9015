import pytest

from pipelines.root import Root
from pipelines.root.leftovers import remove_leftovers
from pipelines.root.lock import FileLock
from pipelines.steps.step_folders import StepFolders
from tests.pipelines.run_records import make_record
from tests.pushed_versions import serve_version

STEP = "0123456789abcdef" * 4
LEFT = (
    "serving/.pushing-1a/saved_model.pb",
    "serving/.removing-5-1a/saved_model.pb",
    "data/.0123456789abcdef.77/data-00000.csv",
    "runs/20260102-030405.77.partial",
    "runs/.20260102-030405.html.partial",
    f"artifacts/Trainer/{STEP}/unfinished/20260102-030405-0123/checkpoint",
    "artifacts/Trainer/model_run/unfinished/20260103-000000-2-0123/checkpoint",  # an earlier version's
    f"artifacts/Tuner/{STEP}/unfinished/20260102-030405-0123/trials/3/checkpoint",
)
KEPT = (
    "serving/5/saved_model.pb",
    "withdrawn/7/saved_model.pb",
    "data/0123456789abcdef/data-00000.csv",
    "runs/20260102-030405.json",
    "runs/20260102-030405.html",
    f"artifacts/Trainer/{STEP}/unfinished/20260103-000000-0123/checkpoint",
    "artifacts/Trainer/model_run/unfinished/20260102-999999-0123/checkpoint",
    f"artifacts/Tuner/{STEP}/unfinished/20260103-000000-0123/trials/3/checkpoint",
    f"artifacts/Trainer/{STEP}/model/Format-Serving/saved_model.pb",
)


def test_what_killed_runs_have_left_is_removed_and_nothing_else(tmp_path):
    for name in (*LEFT, *KEPT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('model_checkpoint_path: "model.ckpt-7"\n')
    assert remove_leftovers(Root(tmp_path), "20260103-000000", "20260102-999999") == [
        "the training of run 20260102-030405, at step 7, was not resumed: removed",
        "the training of run 20260103-000000-2, at step 7, was not resumed: removed",
        "the search of run 20260102-030405 was not resumed: removed",
    ]
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == set(KEPT)
    assert sorted(path.name for path in (tmp_path / "serving").iterdir()) == ["5"]


def test_a_new_root_has_nothing_to_tidy(tmp_path):
    remove_leftovers(Root(tmp_path), "20260103-000000")
    assert list(tmp_path.iterdir()) == []


def test_what_links_lead_to_outside_of_the_root_stays(tmp_path):
    other, root = tmp_path / "other", Root(tmp_path / "root")
    training = other / STEP / "unfinished" / "20260102-030405-0123"
    training.mkdir(parents=True)
    root.artifacts.mkdir(parents=True)
    root.data.mkdir()
    (root.artifacts / "Trainer").symlink_to(other)
    (root.data / ".0123456789abcdef.77").symlink_to(other)
    assert remove_leftovers(root, "20260103-000000") == []
    assert training.is_dir()
    assert list(root.data.iterdir()) == []  # the link itself is gone


@pytest.fixture
def on_kubeflow(tmp_path):
    """A root with a run on Kubeflow that goes on; returns the root and the id of the run."""
    root = Root(tmp_path / "root")
    record = make_record(status="running", kubeflow_run="run-1")
    root.records.write(record)
    return root, record.run_id


def test_what_a_run_on_kubeflow_makes_meanwhile_stays(on_kubeflow):
    root, run_id = on_kubeflow
    training = root.artifacts / "Trainer" / STEP / "unfinished" / f"{run_id}-0123"
    made, left = (root.artifacts / "Transform" / name for name in (STEP, STEP[::-1]))
    for folder in (training, made, left):
        folder.mkdir(parents=True)
    with FileLock(made / ".lock").held():
        remove_leftovers(root, "20260103-000000")
    assert [folder.exists() for folder in (training, made, left)] == [True, True, False]
    root.records.write(root.records.read(run_id).changed(status="failed"))
    remove_leftovers(root, "20260103-000000")
    assert not training.exists()


def test_steps_at_work_stay_though_another_step_of_their_run_has_failed(on_kubeflow):
    root, run_id = on_kubeflow
    root.records.write(root.records.read(run_id).changed(status="failed"))
    training = root.artifacts / "Trainer" / STEP / "unfinished" / f"{run_id}-0123"
    made = root.artifacts / "Transform" / STEP
    for folder in (training, made):
        folder.mkdir(parents=True)
    with FileLock(made / ".lock").held(), FileLock(training.parents[1] / ".lock").held():
        assert remove_leftovers(root, "20260103-000000") == []
        assert StepFolders(root.artifacts).unfinished() == []
    assert [training.exists(), made.exists()] == [True, True]


def test_copies_of_versions_that_cannot_be_served_any_more_go(tmp_path):
    root = Root(tmp_path / "root")
    names = [f"2026010{day}-000000" for day in range(1, 7)]
    for name in names:
        root.records.write(make_record(name, status="running" if name == names[0] else "failed"))
    for name in (*names, "serving", "withdrawn"):
        root.kept_artifact(name, "model").mkdir(parents=True)
    for number, (name, folder) in enumerate((("serving", root.serving), ("withdrawn", root.withdrawn)), 5):
        serve_version(folder, number, name, str(root.kept_artifact(name, "model")))
    remove_leftovers(root, "20260110-000000")
    # The first goes on; the data of the last three may be accepted.
    kept = sorted(folder.name for folder in root.kept.iterdir())
    assert kept == [names[0], *names[3:], "serving", "withdrawn"]
