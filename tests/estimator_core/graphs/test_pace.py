"""The number of steps that a loop makes in a given time."""

from estimator_core.execution.base import LoopSize
from estimator_core.graphs.loop_runner import Pace


def test_a_pace_follows_the_last_five_loops():
    pace = Pace(LoopSize(secs=10.0))
    assert pace.next_steps() == 1
    pace.add(1, 5.0)  # the first step is slow
    assert pace.next_steps() == 2
    pace.add(9, 5.0)
    assert pace.next_steps() == 10  # 10 steps in 10 seconds
    for _ in range(5):
        pace.add(1, 40.0)
    assert pace.next_steps() == 1  # one step takes longer than a loop shall
    assert Pace(LoopSize(7)).next_steps() == 7
