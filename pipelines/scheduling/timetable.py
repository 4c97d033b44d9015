"""Due times of runs: cron expressions, intervals, and durations as on the command line."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from pipelines.errors import BadInputError

LONGEST_SECS = 3_660 * 86_400

_SECS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,9})\s*([wdhms])")


def parse_duration(text: str, option: str) -> int:
    """Returns a duration in seconds; one of another form, zero, or too long is refused."""
    compact = text.strip().lower()
    parts = _PART.findall(compact)
    if not parts or _PART.sub("", compact).strip():
        raise BadInputError(
            f"{option} takes numbers with their units (s, m, h, d, w), such as 90s, 6h or 1h30m. "
            f"Received: {text!r}"
        )
    secs = sum(int(number) * _SECS[unit] for number, unit in parts)
    if not secs:
        raise BadInputError(f"{option} must be longer than 0s. Received: {text!r}")
    if secs > LONGEST_SECS:
        raise BadInputError(f"{option} must be at most {LONGEST_SECS // 86_400}d. Received: {text!r}")
    return secs


def format_duration(secs: float) -> str:
    """Returns seconds in the form that `parse_duration` reads, without weeks, rounded to the second."""
    text, left = "", round(secs)
    for unit in "dhms":
        count, left = divmod(left, _SECS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"


@dataclass(frozen=True)
class Cron:
    """The times of a cron expression of five fields.

    When clocks are set forward, a skipped time of day is due right after the gap; when they are set
    back, a repeated one is due once. Expressions that begin with `*` for the minute or the hour go
    by elapsed time. These are the rules of Debian's cron, as implemented by the library cronsim.
    """

    expression: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        from cronsim import CronSim, CronSimError

        fields = len(self.expression.split())
        if fields != 5:
            hint = "; leave out the seconds, which only Kubeflow's schedules have" if fields == 6 else ""
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
        """Returns the first due time after `time`, UTC; None if there is none within 50 years."""
        from cronsim import CronSim

        zone: tzinfo = timezone.utc if self.timezone == "UTC" else ZoneInfo(self.timezone)
        for due in CronSim(self.expression, time.astimezone(zone)):
            # In the hour that clocks repeat, the library may start in its first half.
            if (utc := due.astimezone(timezone.utc)) > time:
                return utc
        return None

    def until(self, time: datetime) -> datetime | None:
        """Returns the last due time up to and including `time`, UTC; None if there was none."""
        for days in (1, 10, 400, 18_500):
            last, following = None, self.after(time - timedelta(days=days))
            while following is not None and following <= time:
                last, following = following, self.after(following)
            if last is not None:
                return last
        return None


@dataclass(frozen=True)
class Every:
    """Times at equal intervals, counted from `start` in both directions."""

    start: datetime
    secs: int

    def after(self, time: datetime) -> datetime:
        """Returns the first due time after `time`, UTC."""
        return self.until(time) + timedelta(seconds=self.secs)

    def until(self, time: datetime) -> datetime:
        """Returns the last due time up to and including `time`, UTC."""
        interval = timedelta(seconds=self.secs)
        return self.start + (time - self.start) // interval * interval


Timetable = Cron | Every
