import pytest

from pipelines.root import Root


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path / "root")
