"""Computes how often a CronJob must start `schedule run --once`, so that no run starts too late."""

import itertools
from collections.abc import Iterator, Sequence
from datetime import datetime

from pipelines.errors import BadInputError
from pipelines.scheduling.durations import format_duration
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.timetable import Cron, Timetable

_START_SECS = 60
"""Time that may pass from a job's start until its pod looks for due ticks."""

_LONGEST_MINUTES = 5
_NUM_TIMES = 200


def wake_up_cron(schedules: Sequence[Schedule], given: str | None, now: datetime) -> str:
    """Returns the cron expression of a job that starts each run within its grace.

    Args:
      schedules: Schedules of the job.
      given: User's expression. Default: every five minutes, or more often if a grace requires it.
      now: Time in UTC.

    Raises:
      BadInputError: The expression cannot be used, or runs would start too late.
    """
    if given is not None:
        try:
            secs = max(_distances(Cron(given), now))
        except ValueError as error:
            raise BadInputError(f"--cron {given!r}: {error}.") from error
        _check(schedules, secs, f'With --cron "{given}"', now)
        return given
    graces = [_grace_secs(schedule, now) for schedule in schedules if schedule.enabled]
    longest = _START_SECS + 60 * _LONGEST_MINUTES
    minutes = int(min([*graces, longest]) - _START_SECS) // 60
    if minutes < 1:
        _check(schedules, 60, "Even with a job each minute", now)
    return "* * * * *" if minutes == 1 else f"*/{minutes} * * * *"


def _check(schedules: Sequence[Schedule], secs: float, job: str, now: datetime) -> None:
    """Raises if a schedule has a shorter grace than the job needs."""
    for schedule in schedules:
        grace = _grace_secs(schedule, now)
        if schedule.enabled and grace < secs + _START_SECS:
            needed = format_duration(secs + _START_SECS)
            raise BadInputError(
                f"{job}, a run of the schedule {schedule.name!r} ({schedule.when()}) may start {needed} "
                f"after it is due, and its grace is {format_duration(grace)}: it would count as missed. "
                f"Give it a longer one (`schedule create ... --replace --grace {needed}`), start the job "
                "more often, or let `schedule run` work without --once, such as in a Deployment of one pod."
            )


def _grace_secs(schedule: Schedule, now: datetime) -> float:
    """Returns the shortest grace of the next runs of a schedule."""
    timetable = schedule.timetable()
    if timetable is None:
        return schedule.grace_of(now)
    return min(map(schedule.grace_of, _times(timetable, now)))


def _distances(timetable: Timetable, now: datetime) -> Iterator[float]:
    times = _times(timetable, now)
    return ((after - before).total_seconds() for before, after in itertools.pairwise(times))


def _times(timetable: Timetable, now: datetime) -> list[datetime]:
    """Returns the next times of a timetable; there is at least one."""
    times: list[datetime] = []
    following = timetable.after(now)
    while following is not None and len(times) < _NUM_TIMES:
        times.append(following)
        following = timetable.after(following)
    return times
