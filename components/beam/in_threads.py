"""A Beam step that works on two elements at a time, for work without Python's lock."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

NUM_THREADS = 2


class InThreads(beam.DoFn):
    """Works on two elements at a time, in threads.

    `process` passes a function to `submit`.
    """

    def start_bundle(self) -> None:
        self._threads = ThreadPoolExecutor(NUM_THREADS)
        self._running: deque[Future[Any]] = deque()

    def submit(self, *work: Any) -> Iterator[Any]:
        """Starts a function with its arguments, and yields an earlier value if it has to wait for that."""
        if len(self._running) == NUM_THREADS:
            yield self._running.popleft().result()
        self._running.append(self._threads.submit(*work))

    def finish_bundle(self) -> Iterator[Any]:
        """Yields the remaining values in windows."""
        yield from map(GlobalWindows.windowed_value_at_end_of_window, self.finish())

    def finish(self) -> Iterator[Any]:
        """Yields the remaining values, and ends the threads."""
        try:
            for running in self._running:
                yield running.result()
        finally:
            self._threads.shutdown()
