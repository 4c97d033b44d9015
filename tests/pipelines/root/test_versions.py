import pytest

from pipelines.root import Root
from pipelines.root.rollback import rollback
from tests.pushed_versions import add_model


@pytest.fixture
def root(tmp_path):
    for version in (5, 70, 800):
        add_model(tmp_path / "serving" / str(version))
    return tmp_path


def test_where_a_version_is(root):
    rollback(Root(root))
    found = [Root(root).versions.state(version) for version in ("5", "70", "800", "9", None)]
    assert found == ["kept", "serving", "withdrawn", "removed", None]


def test_where_tf_serving_would_serve_something_else(root):
    assert Root(root).versions.warnings() == []
    for name in ("900", "0800", "70x", "²"):
        (root / "serving" / name).mkdir()
    assert Root(root).versions.served() == [5, 70, 800]
    found = Root(root).versions.warnings()
    assert [line.split(" is not a version")[0].rpartition("/")[2] for line in found] == ["0800", "900"]
    assert "(here: 800)" in found[0]
