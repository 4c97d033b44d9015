"""Clocks. They are passed in everywhere, so that tests do not wait."""

import time
from datetime import datetime, timezone
from typing import Protocol

_LONGEST_NAP_SECS = 0.5


class Clock(Protocol):
    """Clock of a scheduler."""

    def now(self) -> datetime:
        """Returns the current time, UTC."""
        ...

    def monotonic(self) -> float:
        """Returns seconds that are never set back, and that pause while the machine sleeps."""
        ...

    def sleep(self, secs: float) -> None:
        """Waits, but less if the process has to end."""
        ...


class Stop:
    """Request to end the process, set by a signal's handler."""

    def __init__(self) -> None:
        self.requested = False

    def request(self, *_: object) -> None:
        """Asks the process to end as soon as it can."""
        self.requested = True


class SystemClock:
    """Clock of this machine."""

    def __init__(self, stop: Stop):
        self._stop = stop

    def now(self) -> datetime:
        """Returns the current time, UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Returns seconds that are never set back."""
        return time.monotonic()

    def sleep(self, secs: float) -> None:
        """Waits for some seconds, or until the process is asked to end."""
        # Short naps: a signal's handler only sets a flag, which is safe wherever it interrupts.
        deadline = time.monotonic() + secs
        while not self._stop.requested and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _LONGEST_NAP_SECS))
