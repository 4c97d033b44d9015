import os
from pathlib import Path

import pytest

from components.trainer import unfinished

RUN_ID = "20260102-030405"


def train(model_runs, identity, step):
    folder = Path(unfinished.working_directory(str(model_runs), RUN_ID, identity))
    (folder / step).touch()
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_same_training_finds_what_it_left(tmp_path):
    train(tmp_path, "a", "1")
    assert names(train(tmp_path, "a", "2")) == ["1", "2"]
    assert names(train(tmp_path, "b", "1")) == ["1"]


def test_a_finished_training_becomes_the_output(tmp_path):
    model_run = tmp_path / "7"
    (model_run / "made beforehand").mkdir(parents=True)
    unfinished.finish(str(train(tmp_path, "a", "1")), str(model_run))
    assert names(tmp_path) == ["7"]
    assert names(model_run) == ["1"]
    unfinished.finish(str(model_run), str(model_run))
    assert names(model_run) == ["1"]


def test_another_training_goes_on_with_what_is_handed_over(tmp_path):
    folder = train(tmp_path, "a", "1")
    unfinished.hand_over(folder, tmp_path, RUN_ID, other_code=False)
    assert not folder.exists()
    assert names(train(tmp_path, "c", "2")) == ["1", "2"]
    assert names(train(tmp_path, "d", "3")) == ["3"]
    for name in (f"{RUN_ID}-c", "another-run-handed-over"):
        unfinished.hand_over(tmp_path / "unfinished" / name, tmp_path, "another-run", other_code=False)
    assert names(tmp_path / "unfinished") == [f"{RUN_ID}-d", "another-run-handed-over"]
    # Also into the folder of another step.
    folder = train(tmp_path / "a step", "a", "1")
    unfinished.hand_over(folder, tmp_path / "another step", RUN_ID, other_code=False)
    assert not folder.exists()
    assert names(train(tmp_path / "another step", "b", "2")) == ["1", "2"]


def test_a_finished_training_is_handed_over_as_a_copy(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "1").touch()
    half = tmp_path / "unfinished" / f".{RUN_ID}.partial"
    half.mkdir(parents=True)  # of a process that was killed as it copied
    for _ in range(2):
        unfinished.hand_over(tmp_path / "7", tmp_path, RUN_ID, other_code=False)
    assert names(tmp_path / "unfinished") == [f"{RUN_ID}-handed-over"]
    assert names(train(tmp_path, "c", "2")) == ["1", "2"]
    assert names(tmp_path / "7") == ["1"]


@pytest.mark.parametrize("other_code", [False, True])
def test_what_other_code_has_exported_does_not_go_on(tmp_path, other_code):
    folder = train(tmp_path, "a", "1")
    files = (
        "Format-Serving/checkpoint",
        "Format-Serving/model.ckpt-9.index",
        "Format-Serving/best_eval_result.best.json",
        "Format-Serving/export/best/1600000000/saved_model.pb",
        "notes/export/of_the_users.txt",
    )
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    unfinished.hand_over(folder, tmp_path, RUN_ID, other_code=other_code)
    found = tmp_path / "unfinished" / f"{RUN_ID}-handed-over"
    left = {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()}
    gone = set(files[2:4]) if other_code else set()
    assert left == {"1", *files} - gone


def test_the_newest_training_of_a_run_and_its_step(tmp_path):
    model_runs = tmp_path / "Trainer" / "a step"
    for run_id in (RUN_ID, f"{RUN_ID}-2"):  # the second is another run of the same second
        for identity, step, age in (("a1", 250, 5), ("b2", 100, 9)):
            folder = Path(unfinished.working_directory(str(model_runs), run_id, identity))
            state = folder / "Format-Serving" / "checkpoint"
            state.parent.mkdir()
            state.write_text(f'model_checkpoint_path: "/a/model.ckpt-{step}"\n')
            now = state.stat().st_mtime
            for path in (folder, state.parent, state):
                os.utime(path, (now - age, now - age))
    search = tmp_path / "Tuner" / "a step"
    unfinished.working_directory(str(search), RUN_ID, "c3")  # newer, but no training to go on with
    newest = unfinished.unfinished_training(tmp_path / "Trainer", RUN_ID)
    assert newest == model_runs / "unfinished" / f"{RUN_ID}-a1"
    assert unfinished.training_run_id(newest) == RUN_ID
    assert unfinished.trained_step(newest) == 250
    assert unfinished.unfinished_training(tmp_path / "Trainer", "20990101-000000") is None
    assert unfinished.trained_step(tmp_path / "nothing") is None
    assert unfinished.training_run_id(tmp_path / "unfinished") is None
