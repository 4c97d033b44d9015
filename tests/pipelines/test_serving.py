import pytest

from pipelines.errors import BadInputError
from pipelines.serving import rollback, serving_versions, withdrawn_versions


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


def test_unknown_version(root):
    with pytest.raises(BadInputError, match=r"no version 6 .* Served: 5, 70, 800; withdrawn: none"):
        rollback(root, to=6)
    assert serving_versions(root) == [5, 70, 800]
