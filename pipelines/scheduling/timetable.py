"""Due times of runs: the arithmetic of cron expressions and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Protocol
from zoneinfo import ZoneInfo

from pipelines.scheduling.lazy_sequence import LazySequence


class Timetable(Protocol):
    """The times at which a run is due."""

    def after(self, time: datetime) -> datetime | None:
        """Returns the first due time after `time`, UTC; None if there are no more."""
        ...

    def between(self, after: datetime, until: datetime) -> Sequence[datetime]:
        """Returns the due times after `after`, up to and including `until`; UTC, ascending."""
        ...


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression.

    When clocks are set forward, a skipped time of day is due right after the gap; when they are set
    back, a repeated one is due once. Expressions that begin with `*` for the minute or the hour go
    by elapsed time.

    Source: Debian's cron, as implemented by the library cronsim.

    Attributes:
      expression: Five fields.
      timezone: Name of the time zone of the fields.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        from cronsim import CronSim, CronSimError

        fields = len(self.expression.split())
        if fields != 5:
            hint = "; the seconds of Kubeflow's schedules are left out here" if fields == 6 else ""
            raise ValueError(
                f'a schedule has five fields: minute hour day month weekday, such as "0 3 * * *"{hint}'
            )
        try:
            CronSim(self.expression, datetime.now(timezone.utc))
        except CronSimError as error:
            raise ValueError(
                f"{str(error)[:1].lower()}{str(error)[1:]}; the fields are minute (0-59), hour (0-23), day "
                "(1-31), month (1-12) and weekday (0-7)"
            ) from error
        if self.after(datetime.now(timezone.utc)) is None:
            raise ValueError("there is no such day in the next 50 years")

    def after(self, time: datetime) -> datetime | None:
        """Returns the first due time after `time`, UTC."""
        from cronsim import CronSim

        zone = timezone.utc if self.timezone == "UTC" else ZoneInfo(self.timezone)
        for due in CronSim(self.expression, time.astimezone(zone)):
            # In the hour that clocks repeat, the library may start in its first half.
            if (found := due.astimezone(timezone.utc)) > time:
                return found
        return None

    def between(self, after: datetime, until: datetime) -> Sequence[datetime]:
        """Returns the due times after `after`, up to and including `until`; UTC, ascending."""
        times = []
        time = self.after(after)
        while time is not None and time <= until:
            times.append(time)
            time = self.after(time)
        return times


@dataclass(frozen=True)
class Every:
    """Times at equal intervals.

    Attributes:
      start: Time from which they are counted; not a due time itself.
      secs: Seconds between two of them.
    """

    start: datetime
    secs: int

    def after(self, time: datetime) -> datetime | None:
        """Returns the first due time after `time`, UTC."""
        return self._time(self._next_number(time))

    def between(self, after: datetime, until: datetime) -> Sequence[datetime]:
        """Returns the due times after `after`, up to and including `until`; UTC, ascending.

        They are computed on access: there may be one for each second of a month.
        """
        numbers = range(self._next_number(after), self._next_number(until))
        return LazySequence(numbers, self._time)

    def _time(self, number: int) -> datetime:
        return self.start + timedelta(seconds=self.secs * number)

    def _next_number(self, time: datetime) -> int:
        """Returns the number, counted from 1, of the first time after `time`."""
        return max((time - self.start) // timedelta(seconds=self.secs), 0) + 1
