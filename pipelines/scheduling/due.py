"""Finds the due ticks of a schedule, and decides which of them is run next and which are skipped."""

import itertools
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pipelines.root.history import CLOCK_TOLERANCE
from pipelines.scheduling.history import History, RunsByTick
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.spans import FindArrivals, find_arrivals, new_arrivals
from pipelines.scheduling.ticks import Tick, iso, time_of_key, time_tick

MAX_COUNTED = 1_000
"""Number of due ticks that are counted; a schedule may have been asleep for a year of seconds."""


@dataclass(frozen=True)
class Due:
    """Due ticks of a schedule that no run has done; at most `MAX_COUNTED` are counted."""

    tick: Tick | None = None  # to run next
    count: int = 0
    late: tuple[Tick, ...] = ()  # those that should have been started by now, oldest first
    start: datetime | None = None  # no tick up to then is run any more; None if none is skipped
    passed_spans: frozenset[str] | None = None  # not run from now on; None if nothing is to be stored
    overtaken: tuple[Tick, ...] = ()  # those among them that arrived after a later one was run


def find_due(schedule: Schedule, history: History, now: datetime, find: FindArrivals = find_arrivals) -> Due:
    """Returns the due ticks of a schedule; a disabled one has none."""
    if not schedule.enabled:
        return Due()
    timetable = schedule.timetable()
    if timetable is None:
        return _due_spans(schedule, history, now, find)
    runs = history.runs_by_tick(schedule.name, now)
    times: list[datetime] = []
    time = timetable.after(handled_until(schedule, runs, now))
    while time is not None and time <= now and len(times) < MAX_COUNTED:
        times.append(time)
        time = timetable.after(time)
    # A time with a fraction of a second comes right after its own key, which has none.
    all_ticks = (time_tick(schedule.name, time) for time in times)
    ticks = [tick for tick in all_ticks if tick.key not in runs]
    if not ticks:
        return Due()
    late = tuple(tick for tick in ticks if is_late(schedule, tick, now))
    if schedule.missed == "catch-up":
        return Due(ticks[0], len(ticks), late)
    last = ticks[-1]
    if len(times) == MAX_COUNTED and (newest := timetable.until(now)) is not None:
        last = time_tick(schedule.name, newest)
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
    timetable = schedule.timetable() if schedule.enabled else None
    return timetable.after(handled_until(schedule, runs, now)) if timetable else None


def is_future(time: datetime, now: datetime) -> bool:
    """Returns whether a time is that of a clock that was ahead."""
    return time - now > CLOCK_TOLERANCE


def is_late(schedule: Schedule, tick: Tick, now: datetime) -> bool:
    """Returns whether a tick should have been started by now."""
    return (now - tick.due).total_seconds() > schedule.tick_grace_secs(tick.due)


def untold(schedule: Schedule, late: tuple[Tick, ...], runs: RunsByTick, now: datetime) -> tuple[Tick, ...]:
    """Returns the late ticks that the user was not told about: no run has started since they became late.

    The user is told of all late ticks whenever one of them is started.
    """
    starts = (run.started for tick_runs in runs.values() for run in tick_runs)
    newest = max((start for start in starts if start <= iso(now)), default="")
    graces = (timedelta(seconds=schedule.tick_grace_secs(tick.due)) for tick in late)
    return tuple(tick for tick, grace in zip(late, graces, strict=True) if iso(tick.due + grace) >= newest)


def _due_spans(schedule: Schedule, history: History, now: datetime, find: FindArrivals) -> Due:
    new = new_arrivals(schedule, history, find)
    ticks = [replace(tick, due=min(tick.due, now)) for tick in new.arrivals]
    ahead = [tick for tick in ticks if tick.key > new.newest]
    behind = tuple(tick for tick in ticks if tick.key < new.newest and tick.is_complete)
    late = [tick for tick in ticks if is_late(schedule, tick, now)]
    late.sort(key=lambda tick: tick.due)
    if schedule.missed == "catch-up":
        # In order: no new span is run before an older new span that is still being written.
        to_run = [*behind, *itertools.takewhile(lambda tick: tick.is_complete, ahead)]
        return Due(to_run[0] if to_run else None, len(to_run), tuple(late), passed_spans=new.old)
    following = [tick for tick in ahead if tick.is_complete]
    passed = frozenset(tick.key for tick in (*behind, *following[:-1]))
    return Due(
        following[-1] if following else None,
        len(following) + len(behind),
        tuple(tick for tick in late if tick not in behind),
        passed_spans=passed.union(new.old or ()) if passed else new.old,
        overtaken=behind,
    )
