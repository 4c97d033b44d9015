"""Each Execution in turn."""

import pytest

from tests.contract.executions import EXECUTIONS, OTHER_NUMBERS_OF_STEPS, count_advances


@pytest.fixture(params=sorted(EXECUTIONS))
def execution(request):
    return {**EXECUTIONS, **OTHER_NUMBERS_OF_STEPS}[request.param]()


@pytest.fixture
def advanced(execution, monkeypatch):
    """The numbers of steps made without hooks, call by call."""
    return count_advances(execution, monkeypatch)
