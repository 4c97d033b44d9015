"""Recognizes text columns that hold numbers, and their decimal mark."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.data.column_cells import ColumnCells
from pipelines.data.formats.arrow_reading import read_numbers
from pipelines.data.formats.number_format import (
    AMBIGUOUS,
    COMMA,
    CURRENCY,
    PERCENT,
    POINT,
    DecimalMark,
    NumberFormat,
)
from pipelines.data.profile import CsvProfile

_DIGITS = "[0-9]"


@dataclass(frozen=True)
class Moments:
    """Moments of a column's numbers.

    Attributes:
      mean: Mean of the numbers.
      variance: Population variance of the numbers.
      minimum: Smallest number.
      maximum: Largest number.
      num_unreadable: Number of cells with a value that is not a number.
    """

    mean: float
    variance: float
    minimum: float
    maximum: float
    num_unreadable: int = 0


def formats_of(cells: ColumnCells) -> tuple[NumberFormat, ...]:
    """Returns the formats in which every cell is a number; both if they cannot be distinguished."""
    return tuple(
        number_format
        for number_format in (POINT, COMMA)
        if cells.all_match(number_format.pattern) and cells.count(_DIGITS)
    )


def mark_of_file(profile: CsvProfile) -> DecimalMark | None:
    """Returns the decimal mark that all columns agree on; None if it is unknown, or they differ."""
    marks: set[DecimalMark] = set()
    for column in profile.columns.values():
        cells = ColumnCells(profile, column.name)
        if column.type == "string":
            formats = formats_of(cells)
            if len(formats) == 1 and cells.count(r"[0-9.,][.,][0-9]|^[.,][0-9]"):
                marks.add(formats[0].decimal)
        elif column.type == "float" and not cells.all_match(AMBIGUOUS):
            marks.add(".")
    return marks.pop() if len(marks) == 1 else None


def measure(cells: ColumnCells, number_format: NumberFormat | None) -> Moments | None:
    """Returns the moments of a column's numbers; None when there are none."""
    return moments_of(
        (read_numbers(values, number_format), counts) for values, counts in cells.chunks()
    )


def moments_of(chunks: Any) -> Moments | None:
    """Returns the moments of numbers that arrive in arrays.

    Args:
      chunks: Pairs of numbers (float64; numbers that are not finite count as unreadable) and their counts.
    """
    total = squares = 0.0
    count = num_unreadable = 0
    low, high, shift = math.inf, -math.inf, None
    for numbers, counts in chunks:
        finite = np.isfinite(numbers)
        num_unreadable += int(counts[~finite].sum())
        known, weights = numbers[finite], counts[finite]
        if not known.size:
            continue
        if shift is None:
            shift = float(known.mean())  # keeps the sum of squares well-conditioned
        count += int(weights.sum())
        total += float(((known - shift) * weights).sum())
        squares += float(((known - shift) ** 2 * weights).sum())
        low, high = min(low, float(known.min())), max(high, float(known.max()))
    if shift is None:
        return None
    offset = total / count
    variance = max(0.0, squares / count - offset**2)
    return Moments(shift + offset, variance, low, high, num_unreadable)


def describe_format(cells: ColumnCells, number_format: NumberFormat) -> str:
    """Returns a description of the cells of a format, such as `amounts of money, decimal commas`."""
    parts = []
    if cells.count(CURRENCY):
        parts.append("amounts of money")
    if percentages := cells.count(PERCENT):
        all_of_them = percentages == cells.count("")
        parts.append("percentages" if all_of_them else f"{percentages} percentages among others")
    if number_format.decimal == ",":
        parts.append("decimal commas")
    elif cells.count("[0-9],[0-9]"):
        parts.append("thousands separated by commas")
    return ", ".join(parts) or "numbers as text"
