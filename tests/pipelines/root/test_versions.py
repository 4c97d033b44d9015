import pytest

from pipelines.root.rollback import rollback
from pipelines.root.versions import serving_versions, serving_warnings, version_state
from tests.pushed_versions import add_model


@pytest.fixture
def root(tmp_path):
    for version in (5, 70, 800):
        add_model(tmp_path / "serving" / str(version))
    return tmp_path


def test_where_a_version_is(root):
    rollback(root)
    found = [version_state(root, version) for version in ("5", "70", "800", "9", None)]
    assert found == ["kept", "serving", "withdrawn", "removed", None]


def test_where_tf_serving_would_serve_something_else(root):
    assert serving_warnings(root) == []
    for name in ("900", "0800", "70x", "²"):
        (root / "serving" / name).mkdir()
    assert serving_versions(root) == [5, 70, 800]
    found = serving_warnings(root)
    assert [line.split(" is no version")[0].rpartition("/")[2] for line in found] == ["0800", "900"]
    assert "(here: 800)" in found[0]
