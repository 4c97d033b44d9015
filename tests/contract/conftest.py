"""Each Execution in turn."""

import pytest

from tests.contract.executions import EXECUTIONS


@pytest.fixture(params=sorted(EXECUTIONS))
def execution(request):
    return EXECUTIONS[request.param]()
