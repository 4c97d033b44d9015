"""The state of a root's schedules, as `schedule list`, `schedule check` and the metrics show it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.scheduling.due import Due, find_due, next_time
from pipelines.scheduling.durations import format_duration
from pipelines.scheduling.locks import is_run_going_on, is_scheduled
from pipelines.scheduling.memory import read_memory
from pipelines.scheduling.notify.outbox import Outbox, Undelivered
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.span_arrival import FindArrivals, find_arrivals
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import Tick, iso


@dataclass(frozen=True)
class Standing:
    """State of a schedule.

    Attributes:
      schedule: The schedule itself.
      next_time: Time of the next run, possibly past; None if unknown.
      running: Tick whose run is active, or about to be resumed by a scheduler; None without one.
      interrupted: Tick whose run was stopped or killed, with no scheduler to resume it; or None.
      last: Tick that ended last.
      last_good: Tick that ended last without failing.
      counts: Ticks by status, and `skipped`, from the beginning.
      num_due: Number of ticks that are due and not claimed.
      late: Due ticks that should have been started by now.
      pending: Number of notifications that wait to be sent.
      pending_error: Error of the last attempt to send one of them; None without one.
      undelivered: Notifications that were put aside.
      problem: Reason why the due ticks are unknown; None if they are known.
    """

    schedule: Schedule
    next_time: datetime | None
    running: Tick | None
    interrupted: Tick | None
    last: Tick | None
    last_good: Tick | None
    counts: Counter[str]
    num_due: int
    late: Sequence[Tick]
    pending: int
    pending_error: str | None
    undelivered: Sequence[Undelivered]
    problem: str | None

    def late_secs(self, now: datetime) -> float:
        """Returns the time for which the oldest late tick has been due; 0 without one."""
        return (now - self.late[0].due_time).total_seconds() if self.late else 0.0

    def as_json(self, now: datetime) -> dict[str, Any]:
        """Returns the fields that `schedule list --json` prints."""
        last = self.last
        return {
            "name": self.schedule.name,
            "when": self.schedule.when(),
            "config": self.schedule.config,
            "enabled": self.schedule.enabled,
            "missed": self.schedule.missed,
            "next": iso(self.next_time) if self.next_time else None,
            "running": self.running.key if self.running else None,
            "interrupted": self.interrupted.key if self.interrupted else None,
            "last": {
                "tick": last.key,
                "due": last.due,
                "finished": last.finished,
                "run_id": last.run_id,
                "status": last.status,
                "reason": last.reason,
                "version": last.version,
            }
            if last
            else None,
            "counts": dict(self.counts),
            "due": self.num_due,
            "late": len(self.late),
            "late_secs": round(self.late_secs(now)),
            "pending_notifications": self.pending,
            "pending_notifications_error": self.pending_error,
            "undelivered_notifications": [
                {"file": str(one.file), "reason": one.reason} for one in self.undelivered
            ],
            "problem": self.problem,
        }


def standings(
    root: Root,
    now: datetime,
    outbox: Outbox,
    find: FindArrivals = find_arrivals,
    damaged: list[str] | None = None,
) -> list[Standing]:
    """Returns the state of each schedule of a root, by name.

    Args:
      root: Root of the runs.
      now: Time in UTC.
      outbox: Notifications of the root.
      find: Function that finds the spans of a schedule's data.
      damaged: List that receives the errors of files that cannot be read. None raises them.

    Raises:
      BadInputError: A file of a schedule is damaged.
    """
    store = ScheduleStore(root)
    found = []
    for name in store.names():
        try:
            found.append(_standing(store, store.read(name), now, outbox, find))
        except BadInputError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    return found


def _standing(
    store: ScheduleStore,
    schedule: Schedule,
    now: datetime,
    outbox: Outbox,
    find: FindArrivals,
) -> Standing:
    ledger = store.ledger(schedule.name)
    problem = read_memory(ledger.folder).problem
    due = Due()
    try:
        due = find_due(schedule, ledger, now, store.root, find)
    except (BadInputError, OSError) as error:
        problem = str(error)
    last, last_good = ledger.last_ended()
    unfinished = ledger.unfinished()
    pending = [letter for letter in outbox.pending() if letter.schedule == schedule.name]
    goes_on = is_scheduled(store.folder) or is_run_going_on(store.folder)
    return Standing(
        schedule=schedule,
        next_time=next_time(schedule, ledger, now),
        running=unfinished if goes_on else None,
        interrupted=None if goes_on else unfinished,
        last=last,
        last_good=last_good,
        counts=ledger.counts(),
        num_due=due.count,
        late=due.late,
        pending=len(pending),
        pending_error=next((letter.error for letter in pending if letter.error), None),
        undelivered=[one for one in outbox.undelivered() if one.schedule == schedule.name],
        problem=problem,
    )


def problems(found: Sequence[Standing], now: datetime) -> list[str]:
    """Returns the problems of schedules, one sentence each: late, stopped, or unknown."""
    lines = []
    for one in found:
        if one.late:
            minutes = format_duration(one.late_secs(now) // 60 * 60)
            lines.append(
                f"{one.schedule.name}: {len(one.late)} late, the oldest by {minutes}: "
                f"it was due at {one.late[0].due}"
            )
        if one.interrupted is not None and one.schedule.enabled:
            lines.append(
                f"{one.schedule.name}: the run that was due at {one.interrupted.due} was stopped or killed, "
                "and no scheduler works here that resumes it"
            )
        if one.problem is not None and one.schedule.enabled:
            lines.append(f"{one.schedule.name}: {one.problem}")
    return lines


def notification_problems(found: Sequence[Standing], outbox: Outbox) -> list[str]:
    """Returns the problems of notifications, one sentence each. Runs do not depend on them."""
    lines = [
        f"{one.schedule.name}: {one.pending} notifications are not sent yet: {one.pending_error}"
        for one in found
        if one.pending_error is not None
    ]
    aside = [f"not delivered: {one.file}: {one.reason}" for one in outbox.undelivered()]
    return [*lines, *aside]


def table(found: Sequence[Standing], now: datetime) -> Any:
    """Returns schedules as a `rich.table.Table`."""
    from rich.table import Table

    names = ("schedule", "when", "next (UTC)", "last run", "status", "version", "")
    made = Table(*names, box=None)
    for one in found:
        last = one.last
        marks = []
        if not one.schedule.enabled:
            marks.append("disabled")
        if one.running is not None:
            marks.append("running")
        if one.interrupted is not None:
            marks.append("INTERRUPTED")
        if one.late:
            marks.append(f"LATE: {len(one.late)}")
        if one.problem is not None:
            marks.append("PROBLEM")
        if one.pending:
            marks.append(f"{one.pending} not sent")
        if one.undelivered:
            marks.append(f"{len(one.undelivered)} UNDELIVERED")
        made.add_row(
            one.schedule.name,
            one.schedule.when(),
            one.next_time.strftime("%Y-%m-%d %H:%M:%S") if one.next_time else "",
            (last.run_id or last.due) if last else "",
            str(last.status) if last else "",
            (last.version or "") if last else "",
            ", ".join(marks),
        )
    return made
