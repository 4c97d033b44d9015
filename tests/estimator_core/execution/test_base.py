"""The defaults of an Execution."""

import pytest

from estimator_core.execution.base import Execution, LoopSize, Step


def test_a_way_of_running_says_how():
    with pytest.raises(TypeError, match="abstract"):
        Execution()
    assert Execution.__abstractmethods__ == {"scope", "make_inputs", "build_step", "session_creator"}


def test_it_is_one_copy_one_step_and_the_chief():
    assert (Execution.num_replicas, Execution.steps_per_session_run) == (1, 1)
    assert Execution.loop_size is None  # hooks are called at the steps that they are due at
    assert Execution.is_chief is True
    assert Execution.strategy is None
    assert LoopSize() == (1, None)  # a loop is of steps unless it takes a time
    assert LoopSize(secs=30.0).secs == 30.0
    assert Step(spec=None).advance is None  # steps are run one by one unless they can advance
    assert set(Step(spec=None)) == {None}
