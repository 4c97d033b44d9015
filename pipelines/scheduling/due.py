"""Which ticks of a schedule are due, and which of them are late, run or skipped."""

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pipelines.scheduling.lazy_sequence import LazySequence
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.span_arrival import Arrival, FindArrivals, new_arrivals, span_tick
from pipelines.scheduling.ticks import Tick, iso, time_tick


@dataclass(frozen=True)
class Due:
    """What is due of a schedule, apart from a tick that was claimed.

    Attributes:
      ticks: To be run, in this order.
      skipped: Those that are not, as one tick; None without any.
      late: Those that should have been started by now, oldest first: some of `ticks` and of `skipped`.
      count: How many are due.
    """

    ticks: Sequence[Tick] = ()
    skipped: Tick | None = None
    late: Sequence[Tick] = ()
    count: int = 0


def find_due(
    schedule: Schedule, ledger: Ledger, now: datetime, root: Path, find: FindArrivals
) -> Due:
    """Returns what is due.

    Args:
      schedule: A schedule; of one that is disabled, nothing is due.
      ledger: Of the schedule.
      now: UTC.
      root: Of the pipeline.
      find: Finds the spans that are there.

    Raises:
      BadInputError: The spans cannot be looked for.
    """
    if not schedule.enabled:
        return Due()
    timetable = schedule.timetable()
    if timetable is None:
        there, waiting = _spans(schedule, new_arrivals(schedule, ledger, root, find), now)
        late: Sequence[Tick] = tuple(tick for tick in there if _is_late(schedule, tick, now))
    else:
        waiting = LazySequence(
            timetable.between(handled_until(schedule, ledger), now),
            lambda time: time_tick(schedule.name, time),
        )
        # The grace ends before the next time comes, or is the same for all: the older ones are late.
        num_late = bisect.bisect_left(
            waiting, True, key=lambda tick: not _is_late(schedule, tick, now)
        )
        late = waiting[:num_late] or ()
    if not waiting:
        return Due(late=late)
    if schedule.missed == "catch-up":
        return Due(waiting, None, late, len(waiting))
    kept = 1
    if schedule.missed == "skip" and late and late[-1] == waiting[-1]:
        kept = 0
    over = waiting[: len(waiting) - kept]
    skipped = _skipped(over, now) if over else None
    return Due(waiting[len(over) :], skipped, late, len(waiting))


def _spans(
    schedule: Schedule, arrivals: list[Arrival], now: datetime
) -> tuple[list[Tick], Sequence[Tick]]:
    """Returns the ticks of all spans that are there, and of those that can be run."""
    if schedule.missed == "catch-up":  # in their order: none overtakes one that is being written
        complete = list(itertools.takewhile(lambda one: one.is_complete, arrivals))
    else:
        complete = [one for one in arrivals if one.is_complete]
    there, waiting = (
        [span_tick(schedule.name, one, now) for one in spans] for spans in (arrivals, complete)
    )
    return there, waiting


def handled_until(schedule: Schedule, ledger: Ledger) -> datetime:
    """Returns up to when the ticks of a schedule have been dealt with."""
    newest = ledger.newest()
    return schedule.since if newest is None else max(schedule.since, newest.due_time)


def next_time(schedule: Schedule, ledger: Ledger, now: datetime) -> datetime | None:
    """Returns when the next tick is due; in the past if it is due. None if that is not known."""
    timetable = schedule.timetable()
    if timetable is None or not schedule.enabled:
        return None
    return timetable.after(handled_until(schedule, ledger))


def _is_late(schedule: Schedule, tick: Tick, now: datetime) -> bool:
    return (now - tick.due_time).total_seconds() > schedule.grace_of(tick.due_time)


def _skipped(ticks: Sequence[Tick], now: datetime) -> Tick:
    """Returns ticks that are not run as one, under the key of the last of them."""
    return ticks[-1].changed(
        state="skipped",
        finished=iso(now),
        count=len(ticks),
        first=ticks[0].due,
        reason="late: a later one is due, or the time to start it is over",
    )
