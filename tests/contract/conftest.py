"""Each Execution in turn."""

import pytest

from tests.circles import in_circles
from tests.contract.executions import EXECUTIONS, FIRST, OTHER_NUMBERS_OF_STEPS, count_advances


@pytest.fixture(params=in_circles(sorted(EXECUTIONS), first=FIRST))
def execution(request):
    return {**EXECUTIONS, **OTHER_NUMBERS_OF_STEPS}[request.param]()


@pytest.fixture
def advanced(execution, monkeypatch):
    """The numbers of steps made without hooks, call by call."""
    return count_advances(execution, monkeypatch)
