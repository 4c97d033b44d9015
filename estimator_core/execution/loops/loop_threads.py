"""The threads that run the operations of a loop in the graph: the session's, or only the caller's."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from estimator_core import tf1

_TRIAL_SECS = 0.01  # a trial has enough iterations to take this long
_TRIALS = 6  # three of each
_WORTH = 1.05  # several threads must be faster by this factor, as they use more processors

# Function of (number of iterations, options of `session.run`) that runs a loop; it returns the number of
# iterations made, and True if the loop may go on.
Run = Callable[[int, Any], tuple[int, bool]]


class LoopThreads:
    """Chooses the threads of a loop by trying both kinds in its first runs.

    A single thread runs small operations faster than it could hand them to other threads. Large operations
    run faster on several threads. Within an operation, such as the product of large matrices, several threads
    are used in any case.

    The results are the same, even for numbers so small (below 1.2e-38) that TensorFlow's threads round them
    to 0 and Python's don't: the caller's thread only requests the batch, and the thread that delivers it runs
    the step. That thread was created by one of TensorFlow's threads in the first trial, and rounds as they
    do. So a loop without an iterator is always run by the session's threads.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter, *, chooses: bool = True):
        self.done = 0
        self._clock = clock
        self._times = 1  # iterations of a trial
        # Seconds per iteration: of the session's threads, the caller's, the session's, ...
        self._trials: list[float] = []
        self._options: Any = None
        self._is_chosen = not chooses

    def __call__(self, run: Run, times: int) -> int:
        """Runs iterations of a loop until they are done or it ends by itself; returns their number."""
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
            # Too short, perhaps after a slow first run: start again with twice as many iterations.
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
