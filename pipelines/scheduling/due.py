"""Finds the ticks of a schedule that are due, and decides which of them is run next and which are not run."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.root.history import CLOCK_TOLERANCE
from pipelines.scheduling.history import History, RunsByTick
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.spans import FindArrivals, new_arrivals
from pipelines.scheduling.ticks import Tick, iso, time_of_key, time_tick
from pipelines.scheduling.timetable import Timetable

MAX_COUNTED = 1_000
"""Number of due ticks that are counted; a schedule may have been asleep for a year of seconds."""


@dataclass(frozen=True)
class Due:
    """Ticks of a schedule that are due and that no run has done.

    Attributes:
      tick: Tick to run next; None without one.
      count: Number of due ticks, at most `MAX_COUNTED`.
      late: Due ticks that should have been started by now, oldest first; at most `MAX_COUNTED`.
      start: Time up to which no tick is run any more, if late ones are skipped; None if none are.
      passed_spans: Spans that are not run from now on: those that were there before the schedule, and those
        that a later one has overtaken. None if there is nothing to store.
      overtaken: Spans among them that arrived after a later one was run. The user is told of each.
    """

    tick: Tick | None = None
    count: int = 0
    late: tuple[Tick, ...] = ()
    start: datetime | None = None
    passed_spans: frozenset[str] | None = None
    overtaken: tuple[Tick, ...] = ()


def find_due(schedule: Schedule, history: History, now: datetime, find: FindArrivals) -> Due:
    """Returns the due ticks of a schedule; a disabled one has none.

    Raises:
      BadInputError: The spans cannot be searched.
    """
    if not schedule.enabled:
        return Due()
    timetable = schedule.timetable()
    if timetable is None:
        return _due_spans(schedule, history, now, find)
    runs = history.of(schedule.name, now)
    start = handled_until(schedule, runs, now)
    times = list(itertools.islice(_times(timetable, start, now), MAX_COUNTED))
    ticks = [
        tick
        for tick in (time_tick(schedule.name, time) for time in times)
        if tick.key not in runs  # after the clock was set back, it comes again
    ]
    if not ticks:
        return Due()
    late = tuple(tick for tick in ticks if is_late(schedule, tick, now))
    if schedule.missed == "catch-up":
        return Due(ticks[0], len(ticks), late)
    last = ticks[-1] if len(times) < MAX_COUNTED else _last(schedule, timetable, now)
    if schedule.missed == "skip" and is_late(schedule, last, now):
        return Due(None, len(ticks), late, start=last.due)
    return Due(last, len(ticks), late)


def handled_until(schedule: Schedule, runs: RunsByTick, now: datetime) -> datetime:
    """Returns the time up to which the ticks of a schedule are done or skipped.

    Times in the future are those of a wrong clock: waiting for them would silence the schedule.
    """
    done = (time for key in runs if (time := time_of_key(key)) is not None)
    times = (schedule.since, schedule.created, *done)
    return max((time for time in times if not is_future(time, now)), default=now)


def next_time(schedule: Schedule, runs: RunsByTick, now: datetime) -> datetime | None:
    """Returns the time of the next tick, in the past if it is due; None if unknown."""
    timetable = schedule.timetable()
    if timetable is None or not schedule.enabled:
        return None
    return timetable.after(handled_until(schedule, runs, now))


def is_future(time: datetime, now: datetime) -> bool:
    """Returns whether a time is that of a clock that was ahead."""
    return time - now > CLOCK_TOLERANCE


def is_late(schedule: Schedule, tick: Tick, now: datetime) -> bool:
    """Returns whether a tick should have been started by now."""
    return (now - tick.due).total_seconds() > schedule.grace_of(tick.due)


def untold(
    schedule: Schedule, late: tuple[Tick, ...], runs: RunsByTick, now: datetime
) -> tuple[Tick, ...]:
    """Returns the late ticks that the user was not told about: no run has started since they became late.

    The user is told of all late ticks whenever one of them is started.
    """
    starts = (run.started for of_tick in runs.values() for run in of_tick)
    newest = max((start for start in starts if start <= iso(now)), default="")
    return tuple(
        tick
        for tick in late
        if iso(tick.due + timedelta(seconds=schedule.grace_of(tick.due))) >= newest
    )


def _times(timetable: Timetable, after: datetime, until: datetime) -> Iterator[datetime]:
    time = timetable.after(after)
    while time is not None and time <= until:
        yield time
        time = timetable.after(time)


def _last(schedule: Schedule, timetable: Timetable, now: datetime) -> Tick:
    last = timetable.until(now)
    if last is None:
        raise ValueError(f"It was checked that ticks are due. Received: {schedule.name}, {now}")
    return time_tick(schedule.name, last)


def _due_spans(schedule: Schedule, history: History, now: datetime, find: FindArrivals) -> Due:
    new = new_arrivals(schedule, history, find)
    ticks = {arrival.key: arrival.tick(schedule.name, now) for arrival in new.arrivals}
    complete = [ticks[arrival.key] for arrival in new.arrivals if arrival.is_complete]
    behind = tuple(tick for tick in complete if tick.key < new.newest)
    late = [tick for tick in ticks.values() if is_late(schedule, tick, now)]
    late.sort(key=lambda tick: tick.due)
    if schedule.missed == "catch-up":
        ahead = (arrival for arrival in new.arrivals if arrival.key > new.newest)
        # In order: no new span is run before an older new one that is still being written.
        finished = itertools.takewhile(lambda arrival: arrival.is_complete, ahead)
        to_run = [*behind, *(ticks[arrival.key] for arrival in finished)]
        return Due(to_run[0] if to_run else None, len(to_run), tuple(late), passed_spans=new.old)
    following = [tick for tick in complete if tick.key > new.newest]
    passed = frozenset(tick.key for tick in (*behind, *following[:-1]))
    return Due(
        following[-1] if following else None,
        len(following) + len(behind),
        tuple(tick for tick in late if tick not in behind),
        passed_spans=new.old if not passed else passed | (new.old or frozenset()),
        overtaken=behind,
    )
