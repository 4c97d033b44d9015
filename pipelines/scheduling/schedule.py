"""A schedule, stored as one JSON file in the root."""

import datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from pipelines.config.data import Section
from pipelines.scheduling.durations import LONGEST_SECS, format_duration
from pipelines.scheduling.timetable import Cron, Every, Timetable

Missed = Literal["latest", "skip", "catch-up"]

_LONGEST_GRACE_SECS = 900.0
_NO_NUL = r"^[^\x00]*$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"


class Schedule(Section):
    """Times and settings of a pipeline's runs. Exactly one of `cron`, `every_secs`, `on_new_span` is given.

    Attributes:
      name: Name of the schedule in its root.
      config: Configuration file, an absolute path. It is read anew for each run. None if `settings` has all.
      settings: Values of `--set` for the runs, each `section.key=value`.
      working_dir: Working directory of the runs, for relative paths of `settings` and modules.
      runner: Value of `--runner` for the runs.
      cron: Five fields: minute hour day month weekday.
      every_secs: Seconds between two runs, counted from `created`.
      on_new_span: Starts a run when a span arrives that no run has read.
      poll_secs: Seconds between two searches for new spans.
      timezone: Time zone of `cron`.
      missed: Choice for late ticks: `catch-up` runs each, `latest` the last one, `skip` none.
      grace_secs: Longest delay of a run that still counts as in time. Default: half of the time to the
        next one, and 15 minutes at most.
      timeout_secs: Time limit after which a run is stopped and counts as failed. Default: none.
      retries: Number of times a failed run is resumed, unless its data or configuration are bad.
      enabled: True if it starts runs.
      since: Time up to which nothing is due: that of creation or enabling, or of a tick that was skipped.
      created: Time of creation, UTC.
      passed_spans: Keys of spans that are not run: those that were there before, and skipped ones. None as
        long as the folder of the data was never there.
    """

    name: str = Field(pattern=NAME_PATTERN)
    config: str | None = Field(default=None, pattern=_NO_NUL)
    settings: tuple[str, ...] = ()
    working_dir: str = Field(pattern=_NO_NUL)
    runner: str = "local"
    cron: str | None = None
    every_secs: int | None = Field(default=None, ge=1, le=LONGEST_SECS)
    on_new_span: bool = False
    poll_secs: float = Field(default=60, gt=0, le=LONGEST_SECS, allow_inf_nan=False)
    timezone: str = "UTC"
    missed: Missed = "latest"
    grace_secs: float | None = Field(default=None, gt=0, le=LONGEST_SECS, allow_inf_nan=False)
    timeout_secs: float | None = Field(default=None, gt=0, le=LONGEST_SECS, allow_inf_nan=False)
    retries: int = Field(default=1, ge=0, le=100)
    enabled: bool = True
    since: datetime.datetime
    created: datetime.datetime
    passed_spans: frozenset[str] | None = None

    @field_validator("since", "created")
    @classmethod
    def _has_a_zone(cls, time: datetime.datetime) -> datetime.datetime:
        if time.tzinfo is None:
            raise ValueError("a time has its zone, as in 2026-01-31T03:00:00+00:00")
        if not 1970 <= time.year < 9000:  # the times after it must not leave the calendar
            raise ValueError("a time is in the years 1970 to 8999")
        return time.astimezone(datetime.timezone.utc)

    @field_validator("cron")
    @classmethod
    def _is_a_timetable(cls, cron: str | None) -> str | None:
        if cron is not None:
            Cron(cron)
        return cron

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, timezone: str) -> str:
        try:
            ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                'there is no such time zone; write "UTC", or one such as "Europe/Berlin"'
            ) from error
        return timezone

    @model_validator(mode="after")
    def _has_one_time(self) -> "Schedule":
        given = [self.cron is not None, self.every_secs is not None, self.on_new_span]
        if sum(given) != 1:
            raise ValueError("give exactly one of cron, every_secs and on_new_span")
        if self.on_new_span and self.missed == "skip":
            raise ValueError(
                'missed = "skip" has no meaning with on_new_span: a span stays; give "latest" or "catch-up"'
            )
        return self

    @property
    def config_file(self) -> Path | None:
        """Configuration file; None without one."""
        return None if self.config is None else Path(self.config)

    def timetable(self) -> Timetable | None:
        """Returns the timetable of the runs; None if arriving spans start them."""
        if self.cron is not None:
            return Cron(self.cron, self.timezone)
        if self.every_secs is not None:
            return Every(self.created, self.every_secs)
        return None

    def grace_of(self, tick: datetime.datetime) -> float:
        """Returns the longest delay, in seconds, of a run that still counts as in time."""
        if self.grace_secs is not None:
            return self.grace_secs
        timetable = self.timetable()
        if timetable is None:
            return max(_LONGEST_GRACE_SECS, 2 * self.poll_secs)
        following = timetable.after(tick)
        if following is None:
            return _LONGEST_GRACE_SECS
        return min(_LONGEST_GRACE_SECS, (following - tick).total_seconds() / 2)

    def when(self) -> str:
        """Returns the timetable in words."""
        if self.cron is not None:
            return f"{self.cron} ({self.timezone})"
        if self.every_secs is not None:
            return f"every {format_duration(self.every_secs)}"
        return "on a new span"
