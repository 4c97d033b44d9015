"""Dates and times: ISO 8601, day or month first, twelve hours, and numbers that count from 1970.

Regular expressions here are RE2's, and mean the same to Python's `re`.
"""

from dataclasses import dataclass
from typing import Any, Literal

DateName = Literal[
    "iso", "compact", "day-first", "month-first", "epoch-seconds", "epoch-milliseconds"
]
Part = Literal[
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "half",
    "sign",
    "offset_hour",
    "offset_minute",
]

_YEAR = "((?:1[5-9]|2[0-2])[0-9]{2})"
_MONTH, _DAY = "(0?[1-9]|1[0-2])", "(0?[1-9]|[12][0-9]|3[01])"
_MONTH_2, _DAY_2 = "(0[1-9]|1[0-2])", "(0[1-9]|[12][0-9]|3[01])"
_TIME = (
    "(?:(?:T|,?[ ]+)([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]|60)(?:[.,][0-9]+)?)?"
    "(?:[ ]?([AaPp])[.]?[Mm][.]?)?(?:[ ]?(?:UTC|GMT|Z|([-+][0-9]{2}:?[0-9]{2})))?)?"
)
_PATTERNS: dict[str, tuple[str, tuple[Part, ...]]] = {
    "iso": (f"^{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_TIME}$", ("year", "month", "day")),
    "compact": (f"^{_YEAR}{_MONTH_2}{_DAY_2}{_TIME}$", ("year", "month", "day")),
    "day-first": (f"^{_DAY}[-/.]{_MONTH}[-/.]{_YEAR}{_TIME}$", ("day", "month", "year")),
    "month-first": (f"^{_MONTH}[-/.]{_DAY}[-/.]{_YEAR}{_TIME}$", ("month", "day", "year")),
}
_OFFSET = "^([-+])([0-9]{2}):?([0-9]{2})$"
# By position; RE2 refers to nine groups at most, so a second step takes the offset apart.
_TIME_PARTS: tuple[tuple[Part, ...], ...] = (
    ("hour",), ("minute",), ("second",), ("half",), ("sign", "offset_hour", "offset_minute")
)  # fmt: skip
DIGITS = (("[Aa]", "1"), ("[Pp]", "2"), ("^[+]$", "1"), ("^-$", "-1"), ("^$", "0"))
"""Replacements, in order, that turn any part into an integer."""

SECS_PER_DAY = 86_400


@dataclass(frozen=True)
class DateFormat:
    """A format of points in time.

    Attributes:
      name: `iso` is year-month-day, `compact` the same without separators; a time of day may follow any
        date. `epoch-seconds` and `epoch-milliseconds` are numbers that count from 1970, UTC.
    """

    name: DateName

    @property
    def unit_secs(self) -> float | None:
        """Seconds in one unit of a number that counts; None for text."""
        return {"epoch-seconds": 1.0, "epoch-milliseconds": 1e-3}.get(self.name)

    @property
    def pattern(self) -> str:
        """Regular expression of a whole cell of text without white space around it."""
        return _PATTERNS[self.name][0]

    @property
    def parts(self) -> dict[Part, tuple[tuple[str, str], ...]]:
        """The replacements, in order, that extract each part from a cell that matches."""
        order = (*((part,) for part in _PATTERNS[self.name][1]), *_TIME_PARTS)
        steps: dict[Part, tuple[tuple[str, str], ...]] = {}
        for position, parts in enumerate(order, start=1):
            taken = (self.pattern, rf"\{position}")
            for within, part in enumerate(parts, start=1):
                further = ((_OFFSET, rf"\{within}"),) if len(parts) > 1 else ()
                steps[part] = (taken, *further, *DIGITS)
        return steps


ISO = DateFormat("iso")
COMPACT = DateFormat("compact")
DAY_FIRST = DateFormat("day-first")
MONTH_FIRST = DateFormat("month-first")
EPOCH_SECONDS = DateFormat("epoch-seconds")
EPOCH_MILLISECONDS = DateFormat("epoch-milliseconds")
TEXT_FORMATS = (ISO, DAY_FIRST, MONTH_FIRST, COMPACT)


def seconds_of(parts: dict[Part, Any]) -> tuple[Any, Any, Any]:
    """Returns the seconds since 1970 in local time, those in UTC, and the local days.

    A time without an offset counts as UTC.

    Args:
      parts: Integers by part, as NumPy arrays or tensors. `half` is 1 in the morning, 2 in the
        afternoon and 0 on a 24-hour clock; `sign` is the sign of the offset, 0 without one.
    """
    has_half, is_afternoon = (parts["half"] + 1) // 2, parts["half"] // 2
    hour = parts["hour"] * (1 - has_half) + has_half * (parts["hour"] % 12 + 12 * is_afternoon)
    days = days_since_1970(parts["year"], parts["month"], parts["day"])
    local = days * SECS_PER_DAY + hour * 3_600 + parts["minute"] * 60 + parts["second"]
    offset = parts["sign"] * (parts["offset_hour"] * 3_600 + parts["offset_minute"] * 60)
    return local, local - offset, days


def days_since_1970(year: Any, month: Any, day: Any) -> Any:
    """Returns the days from 1970-01-01 to a date of the Gregorian calendar.

    Args:
      year: Integers, a NumPy array or a tensor like the other arguments.
      month: Integers from 1 to 12.
      day: Integers from 1 to 31.
    """
    # The year begins in March here, so that a leap day is its last.
    march_month = (month + 9) % 12
    march_year = year - march_month // 10
    days = 365 * march_year + march_year // 4 - march_year // 100 + march_year // 400
    return days + (march_month * 306 + 5) // 10 + (day - 1) - 719_468


def month_of(days: Any) -> Any:
    """Returns the month (1 to 12) of the days since 1970-01-01."""
    shifted = days + 719_468
    of_era = shifted % 146_097  # 400 years
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    march_month = (5 * of_year + 2) // 153
    return (march_month + 2) % 12 + 1


def weekday_of(days: Any) -> Any:
    """Returns the day of the week, 0 being Monday, of the days since 1970-01-01, a Thursday."""
    return (days + 3) % 7
