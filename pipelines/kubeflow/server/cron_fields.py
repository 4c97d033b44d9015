"""Checks of the six fields of a cron schedule on Kubeflow.

The server accepts a schedule with a value out of its range, and then no run ever starts.

Source: the syntax of robfig/cron 1, which Kubeflow's controller of recurring runs reads.
"""

import re
from dataclasses import dataclass

from pipelines.errors import BadInputError, counted

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ITEM = re.compile(
    r"(?:[*?]|(?P<low>[0-9]+|[A-Z]{3})(?:-(?P<high>[0-9]+|[A-Z]{3}))?)(?:/(?P<step>[0-9]+))?"
)


@dataclass(frozen=True)
class CronField:
    name: str
    lowest: int
    highest: int
    # Names of the values from `lowest` on, in capitals; case does not matter.
    words: tuple[str, ...] = ()

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
    for field, text in zip(CRON_FIELDS, fields, strict=True):
        if fault := field.fault(text):
            raise BadInputError(f'--cron "{cron}": {fault}. {_ADVICE}.')
    return " ".join(fields)
