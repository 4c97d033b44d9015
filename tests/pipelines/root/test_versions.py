from pathlib import Path

import pytest

from pipelines.errors import BadInputError
from pipelines.root.versions import rollback, serving_versions, version_state, withdrawn_versions


@pytest.fixture
def root(tmp_path):
    for version in (5, 70, 800):
        (tmp_path / "serving" / str(version)).mkdir(parents=True)
    (tmp_path / "serving" / ".pushing-1").mkdir()
    return tmp_path


def test_back_by_one(root):
    assert rollback(root) == 70
    assert (serving_versions(root), withdrawn_versions(root)) == ([5, 70], [800])
    assert rollback(root) == 5
    with pytest.raises(BadInputError, match="no earlier version"):
        rollback(root)


def test_to_a_version_and_forward_again(root):
    assert rollback(root, to=5) == 5
    assert (serving_versions(root), withdrawn_versions(root)) == ([5], [70, 800])
    assert rollback(root, to=70) == 70
    assert (serving_versions(root), withdrawn_versions(root)) == ([5, 70], [800])


def test_where_a_version_is(root):
    rollback(root)
    found = [version_state(root, version) for version in ("5", "70", "800", "9", None)]
    assert found == ["kept", "serving", "withdrawn", "removed", None]


def test_unknown_version(root):
    with pytest.raises(BadInputError, match=r"no version 6 .* Served: 5, 70, 800; withdrawn: none"):
        rollback(root, to=6)
    assert serving_versions(root) == [5, 70, 800]


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
    (root / "serving" / "9000").mkdir()
    kill_after(moves)
    with pytest.raises(KeyboardInterrupt):
        rollback(root, to=5)  # 70, 800 and 9000 have to go
    assert serving_versions(root)[-1] == 9000
    assert sorted(serving_versions(root) + withdrawn_versions(root)) == [5, 70, 800, 9000]
    kill_after(10)
    assert rollback(root, to=5) == 5
    assert serving_versions(root) == [5]


@pytest.mark.parametrize(("moves", "left"), [(0, [800]), (1, [5, 800])])
def test_a_killed_rollback_to_a_withdrawn_version_leaves_one_that_serves(
    root, kill_after, moves, left
):
    (root / "withdrawn").mkdir()
    for version in ("5", "70"):
        (root / "serving" / version).rename(root / "withdrawn" / version)
    kill_after(moves)
    with pytest.raises(KeyboardInterrupt):
        rollback(root, to=5)
    assert serving_versions(root) == left
