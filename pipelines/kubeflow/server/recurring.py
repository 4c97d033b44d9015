"""Recurring runs of Kubeflow: the six fields of their schedule, and their description.

The server accepts a schedule with a value out of its range, and then no run ever starts.

Source: the syntax of robfig/cron 1, which Kubeflow's controller of recurring runs reads.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.errors import BadInputError, counted

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ITEM = re.compile(r"(?:[*?]|(?P<low>[0-9]+|[A-Z]{3})(?:-(?P<high>[0-9]+|[A-Z]{3}))?)(?:/(?P<step>[0-9]+))?")


@dataclass(frozen=True)
class CronField:
    name: str
    lowest: int
    highest: int
    words: tuple[str, ...] = ()  # Names of the values from `lowest` on, in capitals; case does not matter

    def fault(self, text: str) -> str | None:
        """Returns the fault of a field's text; None if it is correct."""
        for item in text.upper().split(","):
            match = _ITEM.fullmatch(item)
            if match is None:
                return f"{text!r} is not a field of a schedule"
            values = [self._value(word) for word in (match["low"], match["high"]) if word]
            if None in values:
                return f"{text!r} is not a valid {self.name}: {self._range()}"
            if len(values) == 2 and values[0] > values[1]:  # type: ignore[operator]  # none is None
                return f"{text!r} is not a valid {self.name}: the range ends before it begins"
            if match["step"] and int(match["step"]) == 0:
                return f"{text!r} is not a valid {self.name}: a step of 0 is not allowed"
        return None

    def _value(self, word: str) -> int | None:
        if word in self.words:
            return self.lowest + self.words.index(word)
        is_in_range = word.isdecimal() and self.lowest <= int(word) <= self.highest
        return int(word) if is_in_range else None

    def _range(self) -> str:
        words = f", or {self.words[0]} to {self.words[-1]}" if self.words else ""
        return f"{self.lowest} to {self.highest}{words}"


CRON_FIELDS = (
    CronField("second", 0, 59),
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day", 1, 31),
    CronField("month", 1, 12, _MONTHS),
    CronField("weekday", 0, 6, _DAYS),
)
"""Fields of a schedule, in their order."""

_ADVICE = (
    "Kubeflow takes five or six fields: [second] minute hour day month weekday, such as "
    '"0 3 * * *" for 3 o\'clock'
)


def six_fields(cron: str) -> str:
    """Returns a schedule with Kubeflow's six fields: one of five fields gets second 0."""
    fields = cron.split()
    if len(fields) == 5:
        fields.insert(0, "0")
    if len(fields) != len(CRON_FIELDS):
        raise BadInputError(f'--cron "{cron}" has {counted(len(fields), "field")}. {_ADVICE}.')
    for kind, text in zip(CRON_FIELDS, fields, strict=True):
        if fault := kind.fault(text):
            raise BadInputError(f'--cron "{cron}": {fault}. {_ADVICE}.')
    return " ".join(fields)


@dataclass(frozen=True)
class Recurrence:
    """Schedule of runs. Either `cron` or `interval_secs` is given."""

    cron: str | None = None  # Six fields, seconds first, in the time zone of the server
    interval_secs: int | None = None  # Seconds between two starts
    catches_up: bool = False  # Starts a run for each missed time; otherwise only for the latest one
    max_concurrency: int = 1  # Number of runs at a time. In one root they wait for each other.

    def as_arguments(self) -> dict[str, Any]:
        return {
            "cron_expression": self.cron,
            "interval_second": self.interval_secs,
            "no_catchup": not self.catches_up,
            "max_concurrency": self.max_concurrency,
        }


@dataclass(frozen=True)
class RecurringRun:
    id: str  # Id of the recurring run
    name: str  # Name of the recurring run; it need not be unique
    when: str  # Description of its schedule
    status: str  # `ENABLED` or `DISABLED`
    missed: str  # `catch-up` or `latest`
    max_concurrency: int  # Number of runs at a time
    pipeline_id: str | None  # Id of its pipeline; None if it was made without one
    # Parameters that its runs set; the others have their defaults.
    parameters: Mapping[str, Any] = field(default_factory=dict)


def described(description: Any) -> RecurringRun:
    trigger, reference = description.trigger, description.pipeline_version_reference
    configured = description.runtime_config
    cron = trigger.cron_schedule if trigger else None
    periodic = trigger.periodic_schedule if trigger else None
    when = "not known"
    if cron is not None and cron.cron:
        when = cron.cron
    elif periodic is not None and periodic.interval_second:
        when = f"every {int(periodic.interval_second)}s"
    return RecurringRun(
        id=description.recurring_run_id,
        name=description.display_name,
        when=when,
        status=str(description.status),
        missed="latest" if description.no_catchup else "catch-up",
        max_concurrency=int(description.max_concurrency or 1),
        pipeline_id=reference.pipeline_id if reference else None,
        parameters=dict((configured.parameters if configured else None) or {}),
    )


def written(parameters: Mapping[str, Any]) -> str:
    """Returns parameters in the form of `--param`, such as `train_steps=500`."""
    return " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in parameters.items()
    )


def dropped_warning(parameters: Mapping[str, Any]) -> str:
    """Returns the warning for a schedule that replaced one with further parameters."""
    options = " ".join(f"--param {written({name: value})}" for name, value in parameters.items())
    return (
        f"the previous schedule set {options}; the new schedule does not, and uses the configuration's value"
    )
