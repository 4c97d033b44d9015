"""The time, and the time of the processors."""

import time


class Clock:
    """The time, and the time of the processors that this process has had, in seconds."""

    def __init__(self):
        self.secs, self.processor_secs = time.perf_counter(), time.process_time()

    def since(self, start, count=1):
        """Returns both, of each of `count` units of work, since `start`, another Clock."""
        return {
            "secs": (self.secs - start.secs) / count,
            "processor_secs": (self.processor_secs - start.processor_secs) / count,
        }
