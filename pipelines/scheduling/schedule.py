"""A schedule, stored as one JSON file in the root."""

import datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from pipelines.config.data import Section
from pipelines.scheduling.timetable import LONGEST_SECS, Cron, Every, Timetable, format_duration

_LONGEST_GRACE_SECS = 900.0
_NO_NUL = r"^[^\x00]*$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$"


class Schedule(Section):
    """Times and settings of a pipeline's runs, with one of `cron`, `every_secs`, `on_new_span`."""

    name: str = Field(pattern=NAME_PATTERN)
    # An absolute path, read anew for each run; None if `settings` has all.
    config: str | None = Field(default=None, pattern=_NO_NUL)
    settings: tuple[str, ...] = ()  # of `--set`: `section.key=value`
    working_dir: str = Field(pattern=_NO_NUL)  # of the runs
    runner: str = "local"
    cron: str | None = None
    every_secs: int | None = Field(default=None, ge=1, le=LONGEST_SECS)  # counted from `created`
    on_new_span: bool = False
    poll_secs: float = Field(default=60, gt=0, le=LONGEST_SECS, allow_inf_nan=False)
    timezone: str = "UTC"
    missed: Literal["latest", "skip", "catch-up"] = "latest"
    grace_secs: float | None = Field(default=None, gt=0, le=LONGEST_SECS, allow_inf_nan=False)
    timeout_secs: float | None = Field(default=None, gt=0, le=LONGEST_SECS, allow_inf_nan=False)
    retries: int = Field(default=1, ge=0, le=100)
    enabled: bool = True
    since: datetime.datetime  # nothing is due up to then: created, enabled, or a tick was skipped
    created: datetime.datetime
    passed_spans: frozenset[str] | None = None  # not run; None until the folder of the data is seen

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
        if [self.cron is not None, self.every_secs is not None, self.on_new_span].count(True) != 1:
            raise ValueError("give exactly one of cron, every_secs and on_new_span")
        if self.on_new_span and self.missed == "skip":
            raise ValueError(
                'missed = "skip" does not apply to on_new_span, because spans stay; give '
                '"latest" or "catch-up"'
            )
        return self

    @property
    def config_file(self) -> Path | None:
        return None if self.config is None else Path(self.config)

    def timetable(self) -> Timetable | None:
        """Returns the timetable of the runs; None if arriving spans start them."""
        if self.cron is not None:
            return Cron(self.cron, self.timezone)
        return None if self.every_secs is None else Every(self.created, self.every_secs)

    def tick_grace_secs(self, tick: datetime.datetime) -> float:
        """Returns the longest delay, in seconds, of a run that still counts as in time."""
        if self.grace_secs is not None:
            return self.grace_secs
        timetable = self.timetable()
        if timetable is None:
            return max(_LONGEST_GRACE_SECS, 2 * self.poll_secs)
        following = timetable.after(tick)
        to_next = (following - tick).total_seconds() if following else float("inf")
        return min(_LONGEST_GRACE_SECS, to_next / 2)

    def when(self) -> str:
        """Returns the timetable in words."""
        if self.cron is not None:
            return f"{self.cron} ({self.timezone})"
        return f"every {format_duration(self.every_secs)}" if self.every_secs else "on a new span"
