import pytest

from tests.pipelines.steps.conftest import Team


@pytest.fixture
def team(tmp_path):
    return Team(tmp_path)
