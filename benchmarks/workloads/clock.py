"""Wall time and processor time."""

import time


class Clock:
    """Wall time and processor time of this process, in seconds."""

    def __init__(self):
        self.secs, self.processor_secs = time.perf_counter(), time.process_time()

    def since(self, start, count=1):
        """Returns both times since `start`, another Clock, for each of `count` units of work."""
        return {
            "secs": (self.secs - start.secs) / count,
            "processor_secs": (self.processor_secs - start.processor_secs) / count,
        }
