"""The clock of a scheduler, and the request to end it. They are passed in, so that tests do not wait."""

import time
from datetime import datetime, timezone

_LONGEST_NAP_SECS = 0.5


class Stop:
    """Request to end the process, set by a signal's handler."""

    requested = False

    def request(self, *_: object) -> None:
        self.requested = True


class Clock:
    def __init__(self, stop: Stop):
        self._stop = stop

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Returns seconds that are never set back, and that pause while the machine sleeps."""
        return time.monotonic()

    def sleep(self, secs: float) -> None:
        """Waits for some seconds, or until the process is asked to end."""
        # Short naps: a signal's handler only sets a flag, which is safe wherever it interrupts.
        deadline = time.monotonic() + secs
        while not self._stop.requested and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _LONGEST_NAP_SECS))
