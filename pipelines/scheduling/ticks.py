"""A tick is one time at which a schedule is due, or one span that has arrived."""

import contextlib
import re
from dataclasses import dataclass
from datetime import date, datetime, timezone

SPAN_PREFIX = "span-"
_KEY_FORMAT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Tick:
    """A tick; its key is that within the schedule, and sorts by time or by span."""

    schedule: str
    key: str
    due: datetime  # of a span, the time at which it arrived
    spans: str | None = None  # `data.spans` for its run; None for the configured ones
    is_complete: bool = True  # False for a span that is being written

    @property
    def id(self) -> str:
        """The mark of this tick in the record of its run, `scheduled_by`."""
        return f"{self.schedule}/{self.key}"


def time_tick(schedule: str, due: datetime) -> Tick:
    return Tick(schedule, key_of_time(due), due)


def key_of_time(due: datetime) -> str:
    """Returns the key of the tick of a time, such as `20260131T030000Z`."""
    return due.astimezone(timezone.utc).strftime(_KEY_FORMAT)


def time_of_key(key: str) -> datetime | None:
    """Returns the time of a tick; None for the tick of a span, of a backfill or of `--now`."""
    try:
        return datetime.strptime(key, _KEY_FORMAT).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def is_span_key(key: str) -> bool:
    """Returns whether a key is that of a span, such as `span-000000000000000007`."""
    match = re.fullmatch(SPAN_PREFIX + r"(?:\d{18}|(\d{4}-\d\d-\d\d))(-v\d{18})?", key, re.ASCII)
    with contextlib.suppress(ValueError):
        return match is not None and bool(match[1] is None or date.fromisoformat(match[1]))
    return False


def iso(time: datetime) -> str:
    """Returns a time, UTC, to the second."""
    return time.astimezone(timezone.utc).isoformat(timespec="seconds")
