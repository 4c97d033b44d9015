"""Choosing the number of steps of a loop by the time it takes."""

from __future__ import annotations

import collections

from estimator_core.execution.base import LoopSize

_MEASURED_LOOPS = 5


class Pace:
    """Number of steps in each loop: a fixed number, or as many as take about the same time.

    When a time is given, the first loop has one step; then the time of a step is measured on the last five
    loops.
    """

    def __init__(self, size: LoopSize):
        self._size = size
        self._loops: collections.deque[tuple[int, float]] = collections.deque(
            maxlen=_MEASURED_LOOPS
        )

    def next_steps(self) -> int:
        """Returns the number of steps of the next loop."""
        if self._size.secs is None:
            return self._size.steps
        steps = sum(steps for steps, _ in self._loops)
        secs = sum(secs for _, secs in self._loops)
        return max(1, round(self._size.secs * steps / secs)) if secs > 0 else 1

    def add(self, steps: int, secs: float) -> None:
        """Records the steps and seconds of a loop."""
        self._loops.append((steps, secs))
