"""Finds the ticks of a schedule that are due, and decides which of the late ones are run or skipped."""

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.root import Root
from pipelines.scheduling.lazy_sequence import LazySequence
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.span_arrival import FindArrivals, new_arrivals, span_name, span_tick
from pipelines.scheduling.ticks import Tick, iso, time_tick


@dataclass(frozen=True)
class Due:
    """Due ticks of a schedule, without a tick that was claimed.

    Attributes:
      ticks: Ticks to run, in this order.
      skipped: Ticks that are not run: one tick that stands for all times, or one for each span.
      overtaken: Spans in `skipped` that arrived after a later one was run. The user is notified of each.
      late: Ticks that should have been started by now, oldest first: some of `ticks` and of `skipped`.
      count: Number of due ticks.
    """

    ticks: Sequence[Tick] = ()
    skipped: Sequence[Tick] = ()
    overtaken: Sequence[Tick] = ()
    late: Sequence[Tick] = ()
    count: int = 0


def find_due(
    schedule: Schedule, ledger: Ledger, now: datetime, root: Root, find: FindArrivals
) -> Due:
    """Returns the due ticks.

    Args:
      schedule: Schedule; a disabled one has no due ticks.
      ledger: Ledger of the schedule.
      now: Time in UTC.
      root: Root of the runs.
      find: Function that finds the spans of the data.

    Raises:
      BadInputError: The spans cannot be searched.
    """
    if not schedule.enabled:
        return Due()
    timetable = schedule.timetable()
    if timetable is None:
        return _due_spans(schedule, ledger, now, root, find)
    waiting = LazySequence(
        timetable.between(handled_until(schedule, ledger), now),
        lambda time: time_tick(schedule.name, time),
    )
    # The grace ends before the next time, or is the same for all: the older ones are late.
    num_late = bisect.bisect_left(waiting, True, key=lambda tick: not _is_late(schedule, tick, now))
    late = waiting[:num_late] or ()
    if not waiting:
        return Due(late=late)
    if schedule.missed == "catch-up":
        return Due(waiting, late=late, count=len(waiting))
    kept = 1
    if schedule.missed == "skip" and late and late[-1] == waiting[-1]:
        kept = 0
    over = waiting[: len(waiting) - kept]
    skipped = (_skipped(over, now),) if over else ()
    return Due(waiting[len(over) :], skipped, late=late, count=len(waiting))


def _due_spans(
    schedule: Schedule, ledger: Ledger, now: datetime, root: Root, find: FindArrivals
) -> Due:
    new = new_arrivals(schedule, ledger, root, find)
    ticks = {one.key: span_tick(schedule.name, one, now) for one in new.arrivals}
    complete = [ticks[one.key] for one in new.arrivals if one.is_complete]
    behind = [tick for tick in complete if tick.key < new.newest]
    skipped: tuple[Tick, ...] = ()
    overtaken: tuple[Tick, ...] = ()
    if schedule.missed == "catch-up":
        ahead = (one for one in new.arrivals if one.key > new.newest)
        # In order: no new span is run before an older new one that is still being written.
        finished = itertools.takewhile(lambda one: one.is_complete, ahead)
        following = [ticks[one.key] for one in finished]
        run = [*behind, *following]
    else:
        following = [tick for tick in complete if tick.key > new.newest]
        run = following[-1:]
        overtaken = tuple(_overtaken(tick, new.newest, now) for tick in behind)
        skipped = (*overtaken, *(_skipped([tick], now) for tick in following[:-1]))
    overtaken_keys = {tick.key for tick in overtaken}
    late = [
        tick
        for tick in ticks.values()
        if _is_late(schedule, tick, now) and tick.key not in overtaken_keys
    ]
    late.sort(key=lambda tick: tick.due_time)
    return Due(run, skipped, overtaken, late, len(run) + len(skipped))


def handled_until(schedule: Schedule, ledger: Ledger) -> datetime:
    """Returns the time up to which the ticks of a schedule have been handled."""
    newest = ledger.newest()
    return schedule.since if newest is None else max(schedule.since, newest.due_time)


def next_time(schedule: Schedule, ledger: Ledger, now: datetime) -> datetime | None:
    """Returns the time of the next tick, in the past if it is due; None if unknown."""
    timetable = schedule.timetable()
    if timetable is None or not schedule.enabled:
        return None
    return timetable.after(handled_until(schedule, ledger))


def _is_late(schedule: Schedule, tick: Tick, now: datetime) -> bool:
    return (now - tick.due_time).total_seconds() > schedule.grace_of(tick.due_time)


def _skipped(ticks: Sequence[Tick], now: datetime) -> Tick:
    """Returns skipped ticks as one, under the key of the last of them."""
    return ticks[-1].changed(
        state="skipped",
        finished=iso(now),
        count=len(ticks),
        first=ticks[0].due,
        reason="late: a later one is due, or the time to start it is over",
    )


def _overtaken(tick: Tick, newest: str, now: datetime) -> Tick:
    """Returns the tick of a span that arrived after a later one and is not run."""
    name = span_name(tick.key)
    return tick.changed(
        state="skipped",
        finished=iso(now),
        reason=f"span {name} arrived after span {span_name(newest)}, and only newer ones are run; `schedule "
        f"backfill --name {tick.schedule} --from {name} --to {name}` runs it",
    )
