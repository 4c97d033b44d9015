from pipelines.root import Root
from pipelines.root.leftovers import remove_leftovers

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
