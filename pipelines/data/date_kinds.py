"""Recognizes columns of dates and times, and their formats."""

import re
from dataclasses import dataclass

from pipelines.data.column_cells import ColumnCells
from pipelines.data.column_profile import ColumnProfile
from pipelines.data.formats.arrow_reading import read_times
from pipelines.data.formats.date_format import (
    COMPACT,
    DAY_FIRST,
    EPOCH_MILLISECONDS,
    EPOCH_SECONDS,
    MONTH,
    MONTH_FIRST,
    SECS_PER_DAY,
    TEXT_FORMATS,
    DateFormat,
)
from pipelines.data.number_kinds import Moments, compute_moments, may_miss

_TIME_NAME = re.compile(
    r"(^|[^a-z])(date|time|timestamp|datetime|epoch|ts|at|on|created|updated|modified)($|[^a-z])"
    r"|(timestamp|datetime|date)$"
)
_FIRST_EPOCH_SECS, _LAST_EPOCH_SECS = 631_152_000, 4_102_444_800  # 1990 to 2100
_CLEAR_MAJORITY = 10  # of cells with the day first to those with the month first, or the reverse
_FIRST_COMPACT, _LAST_COMPACT = 19_000_101, 22_001_231


@dataclass(frozen=True)
class DateColumn:
    date_format: DateFormat
    days: Moments  # Moments of the days since 1970 (UTC, with fractions)
    has_time: bool  # True if the times of day differ


class AmbiguousDatesError(Exception):
    """Day and month cannot be distinguished."""


def find_date_formats(
    column: ColumnProfile, cells: ColumnCells, order: str | None, is_given: bool = False
) -> tuple[DateFormat, ...]:
    """Returns the formats in which (nearly) every cell is a date; several if they cannot be distinguished."""
    if not column.is_numeric:
        misses = {
            item: column.num_values - cells.count(item.pattern)
            for item in TEXT_FORMATS
            if cells.is_common(item.pattern)
        }
        fewest = min(misses.values(), default=column.num_values)
        if not may_miss(fewest, column.num_values):
            return ()
        fitting = tuple(item for item, num in misses.items() if num == fewest)
        if {DAY_FIRST, MONTH_FIRST} <= set(misses) and _contradict(cells):
            fitting = (DAY_FIRST, MONTH_FIRST)
        if fitting == (MONTH,) and not is_given and _are_seasons(cells):
            return ()
        if {DAY_FIRST, MONTH_FIRST} <= set(fitting):
            if order is not None:
                in_order = tuple(item for item in fitting if item.name == order)
                return in_order if may_miss(misses[in_order[0]], column.num_values) else ()
            if cells.all_match("^[0-9]+[.]"):  # with points, the day is first everywhere
                return (DAY_FIRST,)
        return fitting
    low, high = column.minimum, column.maximum
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column.name).lower()  # startDate -> start date
    is_called_so = is_given or bool(_TIME_NAME.search(words))
    if low is None or high is None or not is_called_so:
        return ()
    is_compact = low >= _FIRST_COMPACT and high <= _LAST_COMPACT
    if column.type == "integer" and is_compact and cells.all_match(COMPACT.pattern):
        return (COMPACT,)
    for date_format, unit in ((EPOCH_SECONDS, 1), (EPOCH_MILLISECONDS, 1_000)):
        if low >= _FIRST_EPOCH_SECS * unit and high <= _LAST_EPOCH_SECS * unit:
            return (date_format,)
    return ()


def _contradict(cells: ColumnCells) -> bool:
    """Returns whether some cells must have the day first, and not many fewer or more the month."""
    day_first, month_first = cells.count(DAY_FIRST.pattern), cells.count(MONTH_FIRST.pattern)
    either = cells.count(f"{DAY_FIRST.pattern}|{MONTH_FIRST.pattern}")
    fewer, more = sorted((either - day_first, either - month_first))
    return more < _CLEAR_MAJORITY * fewer


def _are_seasons(cells: ColumnCells) -> bool:
    """Returns whether each month is the number of the next year, as in `2010-11`, `2011/12`."""
    return all(
        int(cell[2:4]) + 1 == int(cell[5:])
        for values, _ in cells.chunks()
        for cell in values.to_pylist()
        if re.match(MONTH.pattern, cell)
    )


def measure(cells: ColumnCells, date_format: DateFormat) -> DateColumn | None:
    """Returns the column of dates; None when too many cells are none, or not in the calendar."""
    has_time = False
    first: int | None = None

    def days() -> object:
        nonlocal has_time, first
        for values, counts in cells.chunks():
            times = read_times(values, date_format)
            clock = times.local_secs[times.is_valid] % SECS_PER_DAY
            if clock.size:
                first = int(clock[0]) if first is None else first
                has_time = has_time or bool((clock != first).any())
            days_or_nan = times.utc_secs / SECS_PER_DAY
            days_or_nan[~times.is_valid] = float("nan")
            yield days_or_nan, counts

    moments = compute_moments(days())
    num_values = cells.profile.columns[cells.column].num_values
    if moments is None or not may_miss(moments.num_unreadable, num_values):
        return None
    return DateColumn(date_format, moments, has_time)


def first_unreadable(cells: ColumnCells, date_format: DateFormat) -> str:
    """Returns a cell that is not a date, or not in the calendar; there must be one."""
    for values, _ in cells.chunks():
        is_valid = read_times(values, date_format).is_valid
        if not is_valid.all():
            return str(values[int(is_valid.argmin())])
    raise LookupError(f"All cells of {cells.column!r} are in the calendar.")


def recognise_dates(
    column: ColumnProfile, cells: ColumnCells, order: str | None, is_given: bool = False
) -> DateColumn | None:
    """Returns the dates of a column; None if it holds none."""
    formats = find_date_formats(column, cells, order, is_given)
    if {DAY_FIRST, MONTH_FIRST} <= set(formats):
        raise AmbiguousDatesError
    for date_format in formats:
        dates = measure(cells, date_format)
        if dates is not None:
            return dates
    return None
