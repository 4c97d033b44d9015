"""How many steps a loop makes in a given time."""

from __future__ import annotations

import collections

from estimator_core.execution.base import LoopSize

_MEASURED_LOOPS = 5


class Pace:
    """How many steps a loop makes: always the same number, or as many as take about the same time.

    The first loop of a time is of one step. Then the last five say how long a step takes.

    Args:
        size: How long a loop is.
    """

    def __init__(self, size: LoopSize):
        self._size = size
        self._loops: collections.deque[tuple[int, float]] = collections.deque(
            maxlen=_MEASURED_LOOPS
        )

    def next_steps(self) -> int:
        """Returns how many steps the next loop makes."""
        if self._size.secs is None:
            return self._size.steps
        steps = sum(steps for steps, _ in self._loops)
        secs = sum(secs for _, secs in self._loops)
        return max(1, round(self._size.secs * steps / secs)) if secs > 0 else 1

    def add(self, steps: int, secs: float) -> None:
        """Notes how long a loop has taken."""
        self._loops.append((steps, secs))
