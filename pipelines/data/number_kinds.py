"""Recognizes text columns that hold numbers, and how they are written."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipelines.data.column_cells import ColumnCells
from pipelines.data.formats.arrow_reading import matches, read_numbers
from pipelines.data.formats.number_format import AMBIGUOUS, ANY_CURRENCY, SPACE, DecimalMark, NumberFormat
from pipelines.data.formats.units import CURRENCIES, DOUBTFUL_MULTIPLE, LETTER_MULTIPLE, MULTIPLES, SCALES
from pipelines.data.profile import CsvProfile

MIN_TO_MISS = 20
"""Number of cells from which a few may not be read."""

MAX_MISS_SHARE = 0.02
"""Share of a column's cells that may not be read; a larger share is not a mistake."""

_NUMBER = f"[.,]?[0-9]+(?:[.,][0-9]+|['\u2019{SPACE}][0-9]{{3}})*(?:[eE][-+]?[0-9]+)?"
_MAX_SHAPES = 1_000
_UNIT = re.compile(
    r"""[^\W\d_]|[°'\u2019\u2032"\u201d\u2033/][\w/]*|[^\W\d_][\w°/.²³^-]*(?: [\w°/.²³^-]+){0,2}"""
)
_MAX_UNIT_LENGTH = 24
_MULTIPLE = re.compile("|".join(one.spelling for one in MULTIPLES.values()))
_MIN_LETTER_SHARE = 0.1
_THOUSANDS_OR_TRILLIONS = re.compile(f"#[{SPACE}]*T[{SPACE}]*(?:{ANY_CURRENCY})")  # 5 T€, 5 TEUR
_HALF_OF_DAY = re.compile(r"(?i:[ap]\.?m\.?)")
_CLOCK = re.compile(r"(?:# days?,? )?#:#(?::#)?")


@dataclass(frozen=True)
class Moments:
    """Moments of a column's numbers."""

    mean: float
    variance: float
    minimum: float
    maximum: float
    num_unreadable: int = 0  # Number of cells with a value that is not a number


@dataclass(frozen=True)
class FoundFormats:
    """Formats in which the cells of a column are numbers."""

    # The formats, two if the decimal mark cannot be told from the cells; none if there is no format
    # for (nearly) all cells.
    formats: tuple[NumberFormat, ...] = ()
    best: NumberFormat | None = None  # Format that fits most cells; None if the cells don't look like numbers
    num_misfits: int = 0  # Number of cells that it does not fit


def may_miss(num_misfits: int, num_values: int) -> bool:
    """Returns whether so few cells do not fit that they count as missing values."""
    few = num_values >= MIN_TO_MISS and num_misfits <= max(1, MAX_MISS_SHARE * num_values)
    return not num_misfits or few


def find_formats(cells: ColumnCells) -> FoundFormats:
    """Returns the formats in which all cells of a column are numbers, or all but a few."""
    if not cells.count("[0-9]"):
        return FoundFormats()
    values, counts = cells.sample()
    fits = [
        (int(counts[matches(values, number_format.pattern)].sum()), number_format)
        for candidate in _candidates(values, counts)
        for number_format in _with_marks(candidate)
    ]
    most, best = max(fits, key=lambda pair: pair[0], default=(0, None))
    if best is None or 2 * most < counts.sum():
        return FoundFormats()
    if (best.unit or best.scale) and cells.count("^0[0-9]"):
        return FoundFormats()  # codes
    num_values = cells.profile.columns[cells.column].num_values
    misses = {
        number_format: num_values - cells.count(number_format.pattern) for number_format in _with_marks(best)
    }
    fewest = min(misses.values())
    formats = tuple(number_format for number_format, missed in misses.items() if missed == fewest)
    if not may_miss(fewest, num_values):
        return FoundFormats((), formats[0], fewest)
    return FoundFormats(formats, formats[0], fewest)


def _with_marks(candidate: NumberFormat) -> tuple[NumberFormat, ...]:
    """Returns a format with decimal points and with decimal commas."""
    return (candidate,) if candidate.clock else (candidate, replace(candidate, decimal=","))


def _candidates(values: Any, counts: Any) -> Iterator[NumberFormat]:
    """Yields formats for the units and currencies of cells, those that convert nothing first."""
    shapes = _count_shapes(values, counts)
    currencies: Counter[str] = Counter()
    units: Counter[str] = Counter()
    for shape, count in shapes.items():
        if money := re.search(ANY_CURRENCY, shape):
            for name, spelling in CURRENCIES.items():
                if re.fullmatch(spelling, money[0]):
                    currencies[name] += count
                    break
            shape = shape.replace(money[0], "", 1)
        for part in shape.split("#")[1:]:
            unit = part.strip(f",%){SPACE}")
            is_unit = len(unit) <= _MAX_UNIT_LENGTH and _UNIT.fullmatch(unit)
            if is_unit and not _HALF_OF_DAY.fullmatch(unit):
                units[unit] += count
    currency = _most_frequent(currencies)
    plain = NumberFormat(currency=currency)
    yield plain
    multiples = {unit: num for unit, num in units.items() if _MULTIPLE.fullmatch(unit)}
    if _are_multiples(multiples, currency, values, counts) and not any(
        map(_THOUSANDS_OR_TRILLIONS.search, shapes)
    ):
        yield replace(plain, scale="multiples")
    if unit := _most_frequent(units):
        yield replace(plain, unit=unit)
    for scale, known_units in SCALES.items():
        spelling = "|".join(unit_of_scale.spelling for unit_of_scale in known_units)
        used = [unit for unit in units if re.fullmatch(spelling, unit)]
        if used and not (scale == "time" and _may_be_months(used)):
            yield NumberFormat(scale=scale)
    if any(_CLOCK.fullmatch(shape) for shape in shapes):
        # Where there is `59:59` and `1:02:03`, and from `24:00` on, the last part is seconds.
        has_hours = "#:#" in shapes and "#:#:#" in shapes
        is_long = matches(values, "^-?(?:2[4-9]|[3-9][0-9]|[0-9]{3,}):[0-9]{2}$").any()
        yield NumberFormat(clock="m:ss" if has_hours or is_long else "h:mm")


def _are_multiples(multiples: Mapping[str, int], currency: str, values: Any, counts: Any) -> bool:
    """Returns whether such endings of numbers, with the number of their cells, multiply them."""
    if currency:
        return bool(multiples)
    if any(not re.match(f"{DOUBTFUL_MULTIPLE}|{LETTER_MULTIPLE}", ending) for ending in multiples):
        return True
    if not any(re.match(LETTER_MULTIPLE, ending) for ending in multiples):
        return False
    has_fraction = matches(values, f"[.,][0-9]+[{SPACE}]*[kKM]$").any()
    return bool(has_fraction or sum(multiples.values()) >= _MIN_LETTER_SHARE * counts.sum())


def _may_be_months(units: list[str]) -> bool:
    """Returns whether `m` occurs only together with days or weeks, so that it may be minutes or months."""
    is_long = [re.fullmatch("(?i:w|d|(?:wk|week|day)s?)", unit) for unit in units]
    is_m = [re.fullmatch("(?i:m)", unit) for unit in units]
    return any(is_long) and any(is_m) and all(map(any, zip(is_long, is_m, strict=True)))


def _count_shapes(values: Any, counts: Any) -> dict[str, int]:
    """Returns the number of cells of each shape, in which `#` stands for a number; none if they are many."""
    import pyarrow.compute as pc

    shapes = pc.replace_substring_regex(values, _NUMBER, "#").dictionary_encode()
    if len(shapes.dictionary) > _MAX_SHAPES:
        return {}
    sums = np.bincount(shapes.indices.to_numpy(), weights=counts).astype(int).tolist()
    names = shapes.dictionary.to_pylist()
    return {name: count for name, count in zip(names, sums, strict=True) if "#" in name}


def _most_frequent(counts: Counter[str]) -> str:
    return max(counts, key=lambda name: counts[name], default="")


def mark_of_file(profile: CsvProfile, formats_by_column: Mapping[str, FoundFormats]) -> DecimalMark | None:
    """Returns the decimal mark that all columns agree on; None if it is unknown, or they differ."""
    marks: set[DecimalMark] = set()
    has_points = False  # in columns that are not numbers, such as `1.5` among many `unknown`
    for name, column in profile.columns.items():
        cells = ColumnCells(profile, name)
        if name in formats_by_column:
            formats, best = formats_by_column[name].formats, formats_by_column[name].best
            if not formats and best and best.decimal == ".":
                with_comma = replace(best, decimal=",").pattern
                has_points |= cells.count(best.pattern) > cells.count(with_comma)
            if len(formats) == 1 and cells.count(r"[0-9.,][.,][0-9]|^[.,][0-9]"):
                marks.add(formats[0].decimal)
        elif column.type == "float" and not cells.all_match(AMBIGUOUS):
            marks.add(".")
    if not marks and has_points:
        return "."
    return marks.pop() if len(marks) == 1 else None


def measure(cells: ColumnCells, number_format: NumberFormat | None) -> Moments | None:
    """Returns the moments of a column's numbers; None when there are none."""
    return compute_moments((read_numbers(values, number_format), counts) for values, counts in cells.chunks())


def compute_moments(chunks: Any) -> Moments | None:
    """Returns the moments of numbers that arrive in arrays.

    `chunks`: pairs of numbers (float64; numbers that are not finite count as unreadable) and their counts.
    """
    total = squares = 0.0
    count = num_unreadable = 0
    low, high, shift = math.inf, -math.inf, None
    for numbers, counts in chunks:
        finite = np.isfinite(numbers)
        num_unreadable += int(counts[~finite].sum())
        values, weights = numbers[finite], counts[finite]
        if not values.size:
            continue
        if shift is None:
            shift = float(values.mean())  # keeps the sum of squares well-conditioned
        count += int(weights.sum())
        total += float(((values - shift) * weights).sum())
        squares += float(((values - shift) ** 2 * weights).sum())
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    if shift is None:
        return None
    offset = total / count
    variance = max(0.0, squares / count - offset**2)
    return Moments(shift + offset, variance, low, high, num_unreadable)


def first_unreadable(cells: ColumnCells, number_format: NumberFormat) -> str:
    """Returns the first cell that is not a number; there must be one."""
    for values, _ in cells.chunks():
        is_number = np.isfinite(read_numbers(values, number_format))
        if not is_number.all():
            return str(values[int(is_number.argmin())])
    raise LookupError(f"All cells of {cells.column!r} are numbers.")


def describe_format(cells: ColumnCells, number_format: NumberFormat) -> str:
    """Returns a description of the cells of a format, such as `amounts of money, decimal commas`."""
    parts = []
    if number_format.currency:
        parts.append(f"amounts of money ({number_format.currency})")
    if number_format.scale == "multiples":
        parts.append("multiples such as K, M and bn")
    parts += filter(None, [number_format.describe()])
    if percentages := cells.count("%[^%]*$"):
        all_of_them = percentages == cells.count("")
        parts.append("percentages" if all_of_them else f"{percentages} percentages among others")
    if number_format.decimal == ",":
        parts.append("decimal commas")
    elif cells.count("[0-9],[0-9]"):
        parts.append("thousands separated by commas")
    return ", ".join(parts) or "numbers as text"
