import os
from pathlib import Path

from components.trainer import unfinished

RUN_ID = "20260102-030405"


def train(model_runs: Path, identity: str, step: str) -> Path:
    folder = Path(unfinished.working_directory(str(model_runs), RUN_ID, identity))
    (folder / step).touch()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_same_training_finds_what_it_left(tmp_path: Path) -> None:
    train(tmp_path, "a", "1")
    assert names(train(tmp_path, "a", "2")) == ["1", "2"]
    assert names(train(tmp_path, "b", "1")) == ["1"]


def test_a_finished_training_becomes_the_output(tmp_path: Path) -> None:
    model_run = tmp_path / "7"
    (model_run / "made beforehand").mkdir(parents=True)
    unfinished.finish(str(train(tmp_path, "a", "1")), str(model_run))
    assert names(tmp_path) == ["7"]
    assert names(model_run) == ["1"]
    unfinished.finish(str(model_run), str(model_run))
    assert names(model_run) == ["1"]


def test_another_training_goes_on_with_what_is_handed_over(tmp_path: Path) -> None:
    older, newer = train(tmp_path, "a", "1"), train(tmp_path, "b", "2")
    os.utime(older, (1, 1))
    unfinished.hand_over(tmp_path, RUN_ID, RUN_ID)
    assert not newer.exists()
    assert names(train(tmp_path, "c", "3")) == ["2", "3"]
    assert names(train(tmp_path, "d", "4")) == ["4"]


def test_a_finished_training_is_handed_over_as_a_copy(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "1").touch()
    unfinished.hand_over_copy(tmp_path / "7", RUN_ID)
    unfinished.hand_over_copy(tmp_path / "7", RUN_ID)
    assert names(train(tmp_path, "c", "2")) == ["1", "2"]
    assert names(tmp_path / "7") == ["1"]


def test_nothing_is_handed_over_where_there_is_nothing(tmp_path: Path) -> None:
    unfinished.hand_over(tmp_path, RUN_ID, RUN_ID)
    assert names(tmp_path) == []
    train(tmp_path, "a", "1")
    unfinished.hand_over(tmp_path, "another run", RUN_ID)
    assert names(tmp_path / "unfinished") == [f"{RUN_ID}-a"]
    unfinished.hand_over(tmp_path, RUN_ID, "another run")
    assert names(tmp_path / "unfinished") == ["another run-handed-over"]
