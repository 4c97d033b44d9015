"""The threads that run the operations of a loop in the graph: the session's, or the caller's alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from estimator_core import tf1

_TRIAL_SECS = 0.01  # a trial is of so many times that it takes this long
_TRIALS = 6  # three of each
_WORTH = 1.05  # several threads are to be so much faster, as they take more of the processors

# Runs a loop so many times, with options of `session.run`; returns how many times it has run it, and whether
# it may go on.
Run = Callable[[int, Any], tuple[int, bool]]


class LoopThreads:
    """Chooses the threads of a loop by trying both in its first runs.

    One thread does small operations sooner than it can hand them to others. Large ones are better done by
    several. Parts of an operation, such as those of the product of large matrices, are done by several
    threads in any case.

    The results are the same, even of numbers so small (below 1.2e-38) that TensorFlow's threads round them to
    0 and Python's don't: the caller's thread only asks for the batch, and the thread that brings it goes on.
    That one was made in the first trial by one of TensorFlow's threads, and rounds as these do. So a loop
    without an iterator is always run by the session's threads.

    Args:
        clock: Returns seconds.
        chooses: False leaves a loop to the session's threads.

    Attributes:
        done: How many times the last call has run the loop in trials that came to their end.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, *, chooses: bool = True):
        self.done = 0
        self._clock = clock
        self._times = 1  # of a trial
        # Seconds for each time: of the session's threads, the caller's, the session's, ...
        self._trials: list[float] = []
        self._options: Any = None
        self._is_chosen = not chooses

    def __call__(self, run: Run, times: int) -> int:
        """Runs a loop so many times, or until it ends by itself; returns how many times it has run it.

        Args:
            run: Runs the loop.
            times: How many times.
        """
        self.done = 0
        may_go_on = True
        while may_go_on and not self._is_chosen and self.done < times:
            may_go_on = self._try(run, min(self._times, times - self.done), times)
        if not may_go_on or self.done == times:
            return self.done
        found, _ = run(times - self.done, self._options)
        return self.done + found

    def _try(self, run: Run, times: int, most: int) -> bool:
        options = _of_the_caller() if len(self._trials) % 2 else None
        start = self._clock()
        found, may_go_on = run(times, options)
        secs = self._clock() - start
        self.done += found
        is_whole = times == self._times
        if is_whole and times < most and secs < _TRIAL_SECS:
            # Too short, perhaps after a first run that was slow: begin again with twice as many times.
            self._times *= 2
            self._trials.clear()
        elif is_whole or times == most:
            self._trials.append(secs / times)
        if len(self._trials) == _TRIALS:
            self._is_chosen = True
            if min(self._trials[1::2]) <= min(self._trials[::2]) * _WORTH:
                self._options = _of_the_caller()
        return may_go_on


def _of_the_caller() -> Any:
    return tf1.RunOptions(inter_op_thread_pool=-1)
