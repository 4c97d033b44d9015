"""Formats of a model's columns of text, in a file next to the model.

A served model reads `1.234,56` or `27.02.1956` itself, and treats what it cannot read as missing.
This file lets a client of the model report instead that a cell does not fit. A second file has the formats of
whole numbers and booleans in the other columns of text, for a client that no longer has their text.
"""

import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pipelines.data.formats.date_format import SECS_PER_DAY, DateFormat, DateName, Part, epoch_seconds
from pipelines.data.formats.number_format import PLAIN, NumberFormat
from pipelines.data.missing import is_missing

if TYPE_CHECKING:
    from components.parsed_columns import ParsedColumns

FILE = "cell_formats.json"
"""Name of the file in `assets.extra/` of a SavedModel."""

TEXT_FILE = "text_formats.json"
"""Name of the file there that has the formats of other columns of text."""

_DIGIT = re.compile(r"\d")
_WRITTEN: dict[DateName | None, str] = {
    "iso": "%Y-%m-%d",
    "compact": "%Y%m%d",
    "day-first": "%d.%m.%Y",
    "month-first": "%m/%d/%Y",
}
_MAX_EXACT = 2**53  # whole numbers up to here are exact as a float
_GROUP = re.compile(r"\\([0-9])")


@dataclass(frozen=True)
class TextFormat:
    """Format of cells of text that a client may take for whole numbers or booleans."""

    # Fewest digits of a whole number, which zeros precede if it has fewer. None if this is not known.
    width: int | None = None
    booleans: tuple[str, str] | None = None  # Words for false and true; None if there are no such two
    is_number: bool = False  # True if the model reads numbers from the cells: it takes any

    def written(self, value: Any) -> Any:
        """Returns a whole number or a boolean as text, if that is certain, and anything else as it is."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool):
            return self.booleans[value] if self.booleans else value
        is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT
        if is_whole or isinstance(value, int):
            is_certain = self.width is not None and (value >= 0 or self.width == 1)
            return str(int(value)).zfill(self.width or 1) if is_certain else value
        return repr(value) if self.is_number and isinstance(value, float) and value == value else value


@dataclass(frozen=True)
class CellFormat:
    """Format of the numbers or dates of a column of text."""

    number: NumberFormat | None = None  # Format of the numbers; None for dates
    date: DateName | None = None
    # Cells of the training data, up to 100, that are in no such format and counted as missing.
    missing: tuple[str, ...] = ()

    def reads(self, cell: str) -> bool:
        """Returns whether a cell has a value in this format, or counts as missing.

        The latter are the tokens for a missing value, and if the training data had cells in no such format,
        these cells and others without a digit, such as `on request`. A number in another format is neither.
        """
        text = cell.strip()
        if is_missing(text) or text in self.missing:
            return True
        if self.missing and not _DIGIT.search(text):
            return True
        match = self._pattern.match(text)
        if match is None or self.date is None or DateFormat(self.date).unit_secs is not None:
            return match is not None
        parts: dict[Part, int] = {}
        for part, steps in DateFormat(self.date).parts.items():
            digits = text
            for pattern, replacement in steps:
                digits = re.sub(pattern, _GROUP.sub(r"\\g<\1>", replacement), digits)
            parts[part] = int(digits)
        return bool(epoch_seconds(parts)[2])

    def is_read(self, cells: Any) -> Any:
        """Returns a mask (NumPy) of the cells that have a value in this format."""
        from pipelines.data.formats import arrow_reading

        if self.date is not None:
            return arrow_reading.read_times(cells, DateFormat(self.date)).is_valid
        return arrow_reading.matches(cells, self._pattern.pattern)

    def parse(self, cells: Any) -> dict[str, Any]:
        """Returns the values of cells by quantity, as a model of the plan reads them: float64, NaN for none.

        A column of numbers has `numbers`. One of dates has `days` since 1970 (UTC) and, unless all times are
        midnight, the `hours` of the day (local time).
        """
        import pyarrow.compute as pc

        from pipelines.data.formats import arrow_reading

        trimmed = pc.utf8_trim_whitespace(cells)
        if self.date is None:
            return {"numbers": arrow_reading.read_numbers(trimmed, self.number)}
        times = arrow_reading.read_times(trimmed, DateFormat(self.date))
        values = {"days": times.utc_secs / SECS_PER_DAY}
        hours = times.local_secs % SECS_PER_DAY / 3_600
        if hours[times.is_valid].any():
            values["hours"] = hours
        return {name: np.where(times.is_valid, part, np.nan) for name, part in values.items()}

    def written(self, value: Any) -> Any:
        """Returns a number or a date as the text of this format, and anything else as it is.

        A number is one in the unit of the column. Durations and units that are converted stay as they are.
        """
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, datetime.date) and self.date in _WRITTEN and value == value:
            return value.strftime(_WRITTEN[self.date]) + (
                value.strftime(" %H:%M:%S%z") if isinstance(value, datetime.datetime) else ""
            )
        number = self.number
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if number is None or not is_number or value != value or number.clock:
            return value
        if number.scale is not None and number.scale != "multiples":
            return value
        text = repr(value).replace(".", number.decimal)
        return f"{text} {number.unit}".rstrip()

    def describe(self) -> str:
        """Describes the cells of the training data, such as `numbers with decimal commas`."""
        if self.date is not None:
            return f"dates ({self.date.replace('-', ' ')})"
        number = self.number or NumberFormat()
        what = f"amounts of money ({number.currency})" if number.currency else "numbers"
        described = [
            number.describe(),
            "with multiples such as K and M" if number.scale == "multiples" else "",
            "with decimal commas" if number.decimal == "," else "",
        ]
        return " ".join(filter(None, [what, *described]))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        if self.number is not None:
            return re.compile(self.number.pattern)
        date_format = DateFormat(self.date) if self.date else None
        return re.compile(PLAIN if date_format is None or date_format.unit_secs else date_format.pattern)


def formats_to_json(formats: Mapping[str, CellFormat] | Mapping[str, TextFormat]) -> str:
    """Returns the content of the file that has the formats of columns, by name."""
    return json.dumps(
        {name: asdict(cell_format) for name, cell_format in formats.items()}, indent=1, sort_keys=True
    )


def parse_cells(cells: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `CellFormat.parse` of cells, for StatisticsGen; `fields` are those of the format."""
    return _format(**fields).parse(cells)


def format_of_column(row: Mapping[str, Any]) -> CellFormat | None:
    """Returns the format of a column of a plan or a record; None if its cells are not parsed."""
    number, date = row.get("number_format"), row.get("date_format")
    return _format(number, date, []) if number or date else None


def find_parsed_columns(
    columns: Iterable[Mapping[str, Any]], earlier: Iterable[Mapping[str, Any]] = ()
) -> "ParsedColumns":
    """Returns the columns whose cells StatisticsGen parses, in the formats of two plans."""
    from components.parsed_columns import ParsedColumns

    formats: dict[str, dict[str, Any]] = {}
    for row in (*columns, *earlier):
        if cell_format := format_of_column(row):
            by_description = formats.setdefault(row["name"], {})
            by_description[cell_format.describe()] = asdict(cell_format)
    return ParsedColumns(f"{__name__}.{parse_cells.__name__}", formats)


def read_formats(model: Path) -> dict[str, CellFormat]:
    """Returns the formats of columns by name; empty if the model has no file of them."""
    return _read(model / "assets.extra" / FILE, _format)


def read_text_formats(model: Path) -> dict[str, TextFormat]:
    """Returns the formats of the other columns of text by name; empty if the model has no file of them."""
    return _read(model / "assets.extra" / TEXT_FILE, _text_format)


_Format = TypeVar("_Format")


def _read(file: Path, make: Callable[..., _Format]) -> dict[str, _Format]:
    if not file.exists():
        return {}
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        return {name: make(**format_fields) for name, format_fields in fields.items()}
    except (TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error


def _format(number: dict[str, str] | None, date: DateName | None, missing: Sequence[str]) -> CellFormat:
    return CellFormat(NumberFormat(**number) if number else None, date, tuple(missing))  # type: ignore[arg-type]


def _text_format(width: int | None, booleans: Sequence[str] | None, is_number: bool) -> TextFormat:
    return TextFormat(width, (booleans[0], booleans[1]) if booleans else None, is_number)
