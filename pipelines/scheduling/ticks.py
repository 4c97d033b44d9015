"""A tick is one time at which a schedule is due, or one span that has arrived."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, get_args

State = Literal["claimed", "done", "skipped"]
TickStatus = Literal["pushed", "unchanged", "finished", "held", "not_blessed", "failed"]

STATUSES: tuple[TickStatus, ...] = get_args(TickStatus)


@dataclass(frozen=True)
class Tick:
    """A tick and its outcome.

    Attributes:
      schedule: Name of the schedule.
      key: Key within the schedule; sorts by time, or by span.
      due: Time at which it was due, UTC, ISO 8601; for a span, the time at which it was found.
      state: `claimed` from before its run starts; `done` when its outcome is known; or `skipped`.
      spans: Value of `data.spans` for its run; None for the configured one.
      starts: Number of starts of its run.
      failures: Number of these starts that failed.
      resumed: True if the newest start continued an unfinished run.
      is_over_time: True if the newest start was stopped at its time limit.
      pid: Process id of the newest start.
      started: Time of the first start, UTC, ISO 8601.
      newest_start: Time of the newest start.
      finished: Time at which its outcome was known.
      run_id: Id of its run; None if it has not got that far.
      status: Status of its run.
      reason: Reason why it was not pushed, or why it was skipped.
      version: Version that was pushed.
      drifted: True if the data differ from those of the served model.
      count: Number of ticks that this one represents: those that were skipped together.
      first: Due time of the first of them.
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
        """The mark of this tick in the record of its run."""
        return f"{self.schedule}/{self.key}"

    @property
    def due_time(self) -> datetime:
        """The due time."""
        return datetime.fromisoformat(self.due)

    @property
    def duration_secs(self) -> float | None:
        """Seconds from the first start of its run to its outcome; None if unknown."""
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
