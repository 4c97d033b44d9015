"""Dates and times: ISO 8601, day or month first, names of months, quarters, weeks, and counts from 1970."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

DateName = Literal[
    "iso",
    "compact",
    "day-first",
    "month-first",
    "day-and-name",
    "name-and-day",
    "month",
    "month-and-year",
    "month-name",
    "quarter",
    "week",
    "epoch-seconds",
    "epoch-milliseconds",
]
Part = Literal[
    "year",
    "month",
    "day",
    "week",
    "weekday",
    "hour",
    "minute",
    "second",
    "half",
    "sign",
    "offset_hour",
    "offset_minute",
]
Steps = tuple[tuple[str, str], ...]
"""Replacements, in order."""

_YEAR = "((?:1[5-9]|2[0-2])[0-9]{2})"
_MONTH, _DAY = "(0?[1-9]|1[0-2])", "(0?[1-9]|[12][0-9]|3[01])"
_MONTH_2, _DAY_2 = "(0[1-9]|1[0-2])", "(0[1-9]|[12][0-9]|3[01])"
_NAMES = (
    "jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?",
    "aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?",
)  # fmt: skip
_NAME = f"((?i:{'|'.join(_NAMES)})[.]?)"
_DAY_NAME = "(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
_TIME = (
    "(?:(?:T|,?[ ]+)([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]|60)(?:[.,][0-9]+)?)?"
    "(?:[ ]?([AaPp])[.]?[Mm][.]?)?(?:[ ]?(?:UTC|GMT|Z|([-+][0-9]{2}:?[0-9]{2})))?)?"
)
# Pattern and the groups of each part; RE2 refers to nine groups at most.
_PATTERNS: dict[str, tuple[str, dict[Part, str]]] = {
    "iso": (f"{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}", {"year": "1", "month": "2", "day": "3"}),
    "compact": (f"{_YEAR}{_MONTH_2}{_DAY_2}", {"year": "1", "month": "2", "day": "3"}),
    "day-first": (f"{_DAY}[-/.]{_MONTH}[-/.]{_YEAR}", {"day": "1", "month": "2", "year": "3"}),
    "month-first": (f"{_MONTH}[-/.]{_DAY}[-/.]{_YEAR}", {"month": "1", "day": "2", "year": "3"}),
    "day-and-name": (
        f"{_DAY_NAME}{_DAY}[.]?[- /]?{_NAME},?[- /]?{_YEAR}",
        {"day": "1", "month": "2", "year": "3"},
    ),
    "name-and-day": (
        f"{_DAY_NAME}{_NAME}[- /]?{_DAY}(?:st|nd|rd|th)?(?:,? +|[-/]){_YEAR}",
        {"month": "1", "day": "2", "year": "3"},
    ),
    "month": (f"{_YEAR}[-/]{_MONTH}", {"year": "1", "month": "2"}),
    "month-and-year": (f"{_MONTH}[-/]{_YEAR}", {"month": "1", "year": "2"}),
    "month-name": (f"{_NAME},?[- /]?{_YEAR}", {"month": "1", "year": "2"}),
    "quarter": (f"(?:{_YEAR}[- /]?[Qq]([1-4])|[Qq]([1-4])[- /]?{_YEAR})", {"year": "14", "month": "23"}),
    "week": (
        f"{_YEAR}[- ]?[Ww](0[1-9]|[1-4][0-9]|5[0-3])(?:-?([1-7]))?",
        {"year": "1", "week": "2", "weekday": "3"},
    ),
}
_WITH_TIME = ("iso", "compact", "day-first", "month-first", "day-and-name", "name-and-day")
_OFFSET = "^([-+])([0-9]{2}):?([0-9]{2})$"
# By position; a second step takes the offset apart.
_TIME_PARTS: tuple[tuple[Part, ...], ...] = (
    ("hour",), ("minute",), ("second",), ("half",), ("sign", "offset_hour", "offset_minute")
)  # fmt: skip
DIGITS = (("[Aa]", "1"), ("[Pp]", "2"), ("^[+]$", "1"), ("^-$", "-1"), ("^$", "0"))
"""Replacements, in order, that turn any part into an integer."""

_MONTHS_OF_NAMES = tuple((f"^(?i:{name})[.]?$", str(month)) for month, name in enumerate(_NAMES, start=1))
_FIRST_MONTHS = (("^4$", "10"), ("^3$", "7"), ("^2$", "4"))  # of the quarters
_FIRST_OF_WEEK = (("^$", "1"),)

SECS_PER_DAY = 86_400


@dataclass(frozen=True)
class DateFormat:
    """A format of points in time."""

    # `iso` is year-month-day, `compact` the same without separators; `day-and-name` and `name-and-day` have
    # names of months in English. A time of day may follow these and the two others that have days. `month` is
    # year-month; a month and a quarter count as their first day, a week without a weekday as its Monday.
    # `epoch-seconds` and `epoch-milliseconds` are numbers that count from 1970, UTC.
    name: DateName

    @property
    def unit_secs(self) -> float | None:
        """Seconds in one unit of a number that counts; None for text."""
        return {"epoch-seconds": 1.0, "epoch-milliseconds": 1e-3}.get(self.name)

    @property
    def has_days(self) -> bool:
        """True if the day of the week is known."""
        return self.name in _WITH_TIME or self.unit_secs is not None

    @property
    def pattern(self) -> str:
        """Regular expression of a whole cell of text without white space around it."""
        return f"^{_PATTERNS[self.name][0]}{_TIME if self.name in _WITH_TIME else ''}$"

    @property
    def parts(self) -> dict[Part, Steps]:
        """The replacements, in order, that extract each part from a cell that matches."""
        pattern = self.pattern
        steps: dict[Part, Steps] = {}
        for part, groups in _PATTERNS[self.name][1].items():
            taken = (pattern, "".join(rf"\{group}" for group in groups))
            steps[part] = (taken, *self._name_steps(part), *DIGITS)
        if self.name in _WITH_TIME:
            for position, parts in enumerate(_TIME_PARTS, start=4):
                taken = (pattern, rf"\{position}")
                for within, part in enumerate(parts, start=1):
                    further = ((_OFFSET, rf"\{within}"),) if len(parts) > 1 else ()
                    steps[part] = (taken, *further, *DIGITS)
        return steps

    def _name_steps(self, part: Part) -> Steps:
        """Returns the replacements for what is not written as a number of the part."""
        if part == "weekday":
            return _FIRST_OF_WEEK
        if part != "month":
            return ()
        return _FIRST_MONTHS if self.name == "quarter" else _MONTHS_OF_NAMES if "name" in self.name else ()


ISO = DateFormat("iso")
COMPACT = DateFormat("compact")
DAY_FIRST = DateFormat("day-first")
MONTH_FIRST = DateFormat("month-first")
MONTH = DateFormat("month")
EPOCH_SECONDS = DateFormat("epoch-seconds")
EPOCH_MILLISECONDS = DateFormat("epoch-milliseconds")
TEXT_FORMATS = (
    ISO,
    DAY_FIRST,
    MONTH_FIRST,
    COMPACT,
    DateFormat("day-and-name"),
    DateFormat("name-and-day"),
    MONTH,
    DateFormat("month-and-year"),
    DateFormat("month-name"),
    DateFormat("quarter"),
    DateFormat("week"),
)


def epoch_seconds(parts: Mapping[Part, Any]) -> tuple[Any, Any, Any]:
    """Returns the seconds since 1970 in local time, those in UTC, and a mask of what is in the calendar.

    A time without an offset counts as UTC, and a month as its first day.

    `parts`: integers by part, as NumPy arrays or tensors. `half` is 1 in the morning, 2 in the afternoon
    and 0 on a 24-hour clock; `sign` is the sign of the offset, 0 without one.
    """
    if "week" in parts:
        fourth = days_since_1970(parts["year"], 1, 4)  # is in the first week
        days = fourth - weekday_number(fourth) + 7 * (parts["week"] - 1) + parts["weekday"] - 1
        thursday = days - parts["weekday"] + 4
        is_known = thursday < days_since_1970(parts["year"] + 1, 1, 1)
    else:
        days = days_since_1970(parts["year"], parts["month"], parts.get("day", 1))
        is_known = month_number(days) == parts["month"]
    local = days * SECS_PER_DAY
    if "hour" not in parts:
        return local, local, is_known
    has_half, is_afternoon = (parts["half"] + 1) // 2, parts["half"] // 2
    hour = parts["hour"] * (1 - has_half) + has_half * (parts["hour"] % 12 + 12 * is_afternoon)
    local = local + hour * 3_600 + parts["minute"] * 60 + parts["second"]
    offset = parts["sign"] * (parts["offset_hour"] * 3_600 + parts["offset_minute"] * 60)
    return local, local - offset, is_known


def days_since_1970(year: Any, month: Any, day: Any) -> Any:
    """Returns the days from 1970-01-01 to a date of the Gregorian calendar."""
    # The year begins in March here, so that a leap day is its last.
    march_month = (month + 9) % 12
    march_year = year - march_month // 10
    days = 365 * march_year + march_year // 4 - march_year // 100 + march_year // 400
    return days + (march_month * 306 + 5) // 10 + (day - 1) - 719_468


def month_number(days: Any) -> Any:
    """Returns the month (1 to 12) of the days since 1970-01-01."""
    shifted = days + 719_468
    of_era = shifted % 146_097  # 400 years
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    march_month = (5 * of_year + 2) // 153
    return (march_month + 2) % 12 + 1


def weekday_number(days: Any) -> Any:
    """Returns the day of the week, 0 being Monday, of the days since 1970-01-01, a Thursday."""
    return (days + 3) % 7
