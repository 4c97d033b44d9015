from pathlib import Path

import pytest

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.rollback import rollback
from tests.pushed_versions import add_model


@pytest.fixture
def root(tmp_path):
    for version in (5, 70, 800):
        add_model(tmp_path / "serving" / str(version))
    (tmp_path / "serving" / ".pushing-1").mkdir()
    return tmp_path


def test_back_by_one(root):
    assert rollback(Root(root)) == 70
    assert (Root(root).versions.served(), Root(root).versions.withdrawn()) == ([5, 70], [800])
    assert rollback(Root(root)) == 5
    with pytest.raises(BadInputError, match="no earlier version"):
        rollback(Root(root))


def test_to_a_version_and_forward_again(root):
    assert rollback(Root(root), to=5) == 5
    assert (Root(root).versions.served(), Root(root).versions.withdrawn()) == ([5], [70, 800])
    assert rollback(Root(root), to=70) == 70
    assert (Root(root).versions.served(), Root(root).versions.withdrawn()) == ([5, 70], [800])


def test_unknown_versions_and_roots_are_refused(root, tmp_path):
    with pytest.raises(BadInputError, match=r"no version 6 .* Served: 5, 70, 800; withdrawn: none"):
        rollback(Root(root), to=6)
    assert Root(root).versions.served() == [5, 70, 800]
    with pytest.raises(BadInputError, match="no earlier version"):
        rollback(Root(tmp_path / "no"))
    assert not (tmp_path / "no").exists()


@pytest.fixture
def kill_after(monkeypatch):
    """Returns a function that lets a number of moves pass and has the next one killed."""

    rename = Path.rename

    def arm(moves):
        done = []

        def counting_rename(self, target):
            if len(done) == moves:
                raise KeyboardInterrupt
            done.append(target)
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", counting_rename)

    return arm


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_rollback_that_is_killed_leaves_the_present_version_in_service(root, kill_after, moves):
    add_model(root / "serving" / "9000")
    kill_after(moves)
    with pytest.raises(KeyboardInterrupt):
        rollback(Root(root), to=5)  # 70, 800 and 9000 have to go
    assert Root(root).versions.served()[-1] == 9000
    assert sorted(Root(root).versions.served() + Root(root).versions.withdrawn()) == [5, 70, 800, 9000]
    kill_after(10)
    assert rollback(Root(root), to=5) == 5
    assert Root(root).versions.served() == [5]


@pytest.mark.parametrize(("moves", "left"), [(0, [800]), (1, [5, 800])])
def test_a_killed_rollback_to_a_withdrawn_version_leaves_one_that_serves(root, kill_after, moves, left):
    (root / "withdrawn").mkdir()
    for version in ("5", "70"):
        (root / "serving" / version).rename(root / "withdrawn" / version)
    kill_after(moves)
    with pytest.raises(KeyboardInterrupt):
        rollback(Root(root), to=5)
    assert Root(root).versions.served() == left


class Killed(BaseException):
    """Stands for SIGKILL."""


def kill(*_):
    raise Killed


def killed_after_the_move(root):
    with pytest.raises(Killed):
        rollback(Root(root), say=kill)
    assert Root(root).versions.served() == [5, 70]


def test_a_rollback_that_was_killed_after_its_move_is_completed_and_goes_no_further(root):
    killed_after_the_move(root)
    done = []
    assert rollback(Root(root), say=done.append) == 70
    assert (Root(root).versions.served(), Root(root).versions.withdrawn()) == ([5, 70], [800])
    assert str(done[0]).startswith("rolled back from 800 to 70, which completes an interrupted rollback")
    assert rollback(Root(root), say=done.append) == 5  # a second wish
    assert str(done[1]) == "rolled back from 70 to 5"


def test_a_rollback_that_was_killed_before_its_move_is_completed(root, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", kill)
        with pytest.raises(Killed):
            rollback(Root(root))
    assert Root(root).versions.served() == [5, 70, 800]
    assert rollback(Root(root)) == 70
    assert rollback(Root(root)) == 5


@pytest.mark.parametrize("change", ["push", "to"])
def test_a_killed_rollback_is_forgotten_when_what_serves_has_changed(root, change):
    killed_after_the_move(root)
    if change == "push":
        add_model(root / "serving" / "9000")
    else:
        rollback(Root(root), to=70)
    assert rollback(Root(root)) == (70 if change == "push" else 5)


def test_what_is_repeated_by_its_number_changes_nothing(root):
    done = []
    for _ in range(2):
        assert rollback(Root(root), to=5, say=done.append) == 5
    assert [*map(str, done)] == ["rolled back from 800 to 5", "5 is already live; nothing was changed"]


@pytest.mark.parametrize("name", ["writing", "local_kubeflow"])
def test_a_rollback_does_not_come_between_a_run(root, name):
    lock = getattr(Root(root).lock, name)
    with lock.held(), pytest.raises(BadInputError, match="Another run is in progress"):
        rollback(Root(root))
    assert Root(root).versions.served() == [5, 70, 800]


def test_only_whole_models_can_be_gone_back_to(root):
    (root / "serving" / "99999999999").write_text("a stray file")
    (root / "serving" / "60").mkdir()
    assert rollback(Root(root)) == 70
    (warning,) = Root(root).versions.warnings()  # 60 is older than 70
    assert "99999999999 is not a version" in warning
