"""The time, and waiting. Handed in everywhere, so that tests do not wait."""

import time
from datetime import datetime, timezone
from typing import Protocol

_LONGEST_NAP_SECS = 0.5


class Clock(Protocol):
    """What a scheduler knows of the time."""

    def now(self) -> datetime:
        """Returns the time of day, UTC."""
        ...

    def monotonic(self) -> float:
        """Returns seconds that nobody sets back, and that stand still while the machine sleeps."""
        ...

    def sleep(self, secs: float) -> None:
        """Waits; less, if the process is to end."""
        ...


class Stop:
    """True if the process is to end. A signal's handler sets it."""

    def __init__(self) -> None:
        self.requested = False

    def request(self, *_: object) -> None:
        """Has the process end as soon as it can."""
        self.requested = True


class SystemClock:
    """The time of this machine.

    Args:
      stop: Ends a `sleep`.
    """

    def __init__(self, stop: Stop):
        self._stop = stop

    def now(self) -> datetime:
        """Returns the time of day, UTC."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Returns seconds that nobody sets back."""
        return time.monotonic()

    def sleep(self, secs: float) -> None:
        """Waits for some seconds, or for the process to be told to end."""
        # Short naps: a signal's handler only sets a flag, which is safe wherever it interrupts.
        deadline = time.monotonic() + secs
        while not self._stop.requested and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _LONGEST_NAP_SECS))
