"""A tick is one time at which a schedule is due, or one span that has arrived."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

State = Literal["claimed", "done", "skipped"]
TickStatus = Literal["pushed", "unchanged", "not_blessed", "failed"]

STATUSES: tuple[TickStatus, ...] = ("pushed", "unchanged", "not_blessed", "failed")


@dataclass(frozen=True)
class Tick:
    """A tick, and what has become of it.

    Attributes:
      schedule: Name of the schedule.
      key: Tells it from the others of the schedule; sorts by time, or by span.
      due: When it was due, UTC, ISO 8601; of a span, when it was found.
      state: `claimed` from before its run starts; `done` when its outcome is known; or `skipped`.
      spans: `data.spans` of its run; None for what the configuration says.
      starts: How often its run was started.
      failures: How many of these starts have failed.
      resumed: True if the newest start went on with an unfinished run.
      is_over_time: True if that was stopped as it took too long.
      pid: Of the newest process of its run.
      started: When its run was started first, UTC, ISO 8601.
      newest_start: When it was started the last time.
      finished: When its outcome was known.
      run_id: Of its run; None if it has not got that far.
      status: What its run has come to.
      reason: Why it was not pushed, or why it was skipped.
      version: That was pushed.
      drifted: True if the data were unlike those of the model that serves.
      count: How many ticks this one stands for: those that were skipped at once.
      first: When the first of them was due.
    """

    schedule: str
    key: str
    due: str
    state: State = "claimed"
    spans: str | None = None
    starts: int = 0
    failures: int = 0
    resumed: bool = False
    is_over_time: bool = False
    pid: int | None = None
    started: str | None = None
    newest_start: str | None = None
    finished: str | None = None
    run_id: str | None = None
    status: TickStatus | None = None
    reason: str | None = None
    version: str | None = None
    drifted: bool = False
    count: int = 1
    first: str | None = None

    def changed(self, **changes: Any) -> "Tick":
        """Returns a copy with some fields changed."""
        return replace(self, **changes)

    @property
    def id(self) -> str:
        """What its run is marked by in the record of the run."""
        return f"{self.schedule}/{self.key}"

    @property
    def due_time(self) -> datetime:
        """When it was due."""
        return datetime.fromisoformat(self.due)

    @property
    def duration_secs(self) -> float | None:
        """From the first start of its run to its outcome; None while that is not known."""
        if self.started is None or self.finished is None:
            return None
        return _secs_between(self.started, self.finished)


def time_tick(schedule: str, due: datetime) -> Tick:
    """Returns the tick of a time."""
    return Tick(schedule, key_of_time(due), iso(due))


def key_of_time(due: datetime) -> str:
    """Returns the key of the tick of a time, such as `20260131T030000Z`."""
    return due.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def iso(time: datetime) -> str:
    """Returns a time, UTC, to the second."""
    utc = time.astimezone(timezone.utc)
    return (utc - timedelta(microseconds=utc.microsecond)).isoformat()


def _secs_between(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
