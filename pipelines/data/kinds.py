"""Recognizes the kind of each column, with the evidence."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pipelines.config.data import ColumnUse
from pipelines.config.toml import columns_entry
from pipelines.data import date_kinds, number_kinds, word_kinds
from pipelines.data.cells import Cell
from pipelines.data.column_cells import ColumnCells
from pipelines.data.formats.cell_format import CellFormat
from pipelines.data.formats.date_format import TEXT_FORMATS, DateFormat, DateName
from pipelines.data.formats.number_format import COMMA, POINT, DecimalMark, NumberFormat
from pipelines.data.missing import is_missing
from pipelines.data.number_kinds import FoundFormats, Moments
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError, counted

MAX_PARTS = 100
"""Number of parts of a column that a model sees, the most frequent ones."""

_SEPARATORS = (";", "|")
_GIVEN_SEPARATORS = (*_SEPARATORS, ",")  # texts have commas, too
_MIN_LIST_SHARE = 0.1  # of the cells that have the separator
_MIN_REPETITIONS = 5  # of a part on average; rarer ones are texts
_MAX_DISTINCT_PARTS = 1_000


@dataclass(frozen=True)
class ListParts:
    """Parts of the lists of a column."""

    separator: str  # Character between the parts
    parts: tuple[str, ...]  # The most frequent parts, in descending order of frequency
    num_parts: int

    def describe(self) -> str:
        more = f"; the {MAX_PARTS} most frequent are used" if self.num_parts > MAX_PARTS else ""
        return f"lists of {counted(self.num_parts, 'different part')} between {self.separator!r}{more}"


def find_list(cells: ColumnCells, is_given: bool = False) -> ListParts | None:
    """Returns the parts of a column of lists; None if it holds none."""
    separators = _GIVEN_SEPARATORS if is_given else _SEPARATORS
    num_with_mark = {mark: cells.count(f"[{mark}]") for mark in separators}
    separator = max(num_with_mark, key=lambda mark: num_with_mark[mark])
    num_cells = cells.profile.columns[cells.column].num_values
    if not num_with_mark[separator] or not (
        is_given or num_with_mark[separator] >= _MIN_LIST_SHARE * num_cells
    ):
        return None
    counts: Counter[str] = Counter()
    for values, occurrences in cells.chunks():
        counts.update(_count_parts(values, occurrences, separator))
        if not is_given and len(counts) > _MAX_DISTINCT_PARTS:
            return None
    if not is_given and counts.total() < _MIN_REPETITIONS * len(counts):
        return None
    parts = sorted(counts, key=lambda part: (-counts[part], part))
    return ListParts(separator, tuple(parts[:MAX_PARTS]), len(parts))


def _count_parts(values: Any, occurrences: Any, separator: str) -> dict[str, int]:
    import numpy as np
    import pyarrow.compute as pc

    lists = pc.split_pattern(values, separator)
    parts = pc.utf8_trim_whitespace(pc.list_flatten(lists)).dictionary_encode()
    weights = occurrences[pc.list_parent_indices(lists).to_numpy()]
    sums = np.bincount(parts.indices.to_numpy(), weights, len(parts.dictionary))
    pairs = zip(parts.dictionary.to_pylist(), sums.astype(int).tolist(), strict=True)
    return {part: count for part, count in pairs if part}


KindName = Literal["number", "category", "boolean", "date", "list", "text", "id", "constant", "empty"]

MOVING_KINDS = ("date", "id")
"""Kinds of columns that have new values in each run's data."""

_MAX_VOCABULARY = 2_000
_MOST_UNREADABLE = 100
_SERIAL_NUMBER = "^[0-9]{4,}[A-Z]+$"
_GROUPS_OF_DIGITS = "^[0-9]+(?:[ .\u00a0\u202f][0-9]+)*$"  # 601 234 567
_FRACTION = "^-?[0-9]*[.,][0-9]+$"
_MIN_ROWS_OF_RANGE = 20
_ADVICE = "If such a cell stands for a missing value, leave it empty; if it is a mistake, correct it"


@dataclass(frozen=True)
class ColumnKind:
    name: KindName
    note: str = ""  # Evidence, or a peculiarity; may be empty
    number_format: NumberFormat | None = None  # Format of numbers that `float` cannot read; None for others
    date_format: DateName | None = None
    moments: Moments | None = None  # Moments of numbers, or of the days of dates
    unreadable: tuple[str, ...] = ()  # Cells that have no such number or date, up to 100
    has_time: bool = False  # True for dates whose times of day differ
    keeps_text: bool = False  # True if it has to stay text though its cells look like numbers
    words: tuple[str, str] | None = None  # Words of a boolean, the true one first
    list_parts: ListParts | None = None
    is_given: bool = False  # True if the kind is configured
    doubt: str | None = None  # Question that the user should decide; None without doubt
    is_new: bool = False  # True if neither the root's schema nor the configuration has the column


def recognise_columns(
    profile: CsvProfile,
    configured: Mapping[str, ColumnUse],
    decimal: DecimalMark | None = None,
    dates: str | None = None,
) -> dict[str, ColumnKind]:
    for name in configured:
        if name not in profile.columns:
            raise BadInputError(
                f"[columns] {name} = {configured[name]!r}: there is no such column. "
                f"Columns: {', '.join(profile.columns)}."
            )
    recogniser = _Recogniser(profile, decimal, dates)
    kinds = {
        name: recogniser.as_given(name, configured[name])
        if name in configured
        else recogniser.recognise(name)
        for name in profile.columns
    }
    return {name: _as_stored(kind, profile, name) for name, kind in kinds.items()}


def _as_stored(kind: ColumnKind, profile: CsvProfile, name: str) -> ColumnKind:
    """Adds to a kind how CsvExampleGen will store the column."""
    column = profile.columns[name]
    if column.is_text_by_few_cells and not kind.doubt:
        doubt = (
            f"column {name!r} is stored as text: {column.num_non_numbers} of {column.num_values} values "
            f"{'is not a plain number' if column.num_non_numbers == 1 else 'are not plain numbers'}, the "
            f"first: {profile.find_non_number(name)}. {_ADVICE}"
        )
        kind = replace(kind, doubt=doubt)
    return replace(kind, keeps_text=True) if column.is_stored_unlike_text else kind


class _Recogniser:
    def __init__(self, profile: CsvProfile, decimal: DecimalMark | None, dates: str | None):
        self._profile, self._dates = profile, dates
        self._found = {
            name: number_kinds.find_formats(ColumnCells(profile, name))
            for name, column in profile.columns.items()
            if column.type == "string"
        }
        self._of_file = decimal or number_kinds.mark_of_file(profile, self._found)

    def recognise(self, name: str) -> ColumnKind:
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        if not column.num_values:
            return ColumnKind("empty", "has no values")
        if column.num_distinct == 1 and not column.num_missing:
            return ColumnKind("constant", "has the same value in every row")
        if column.type == "boolean":
            return ColumnKind("boolean", words=("true", "false"))
        try:
            dates = self._find_dates(name)
        except date_kinds.AmbiguousDatesError:
            first = self._profile.find_cell(name, lambda text: not is_missing(text))
            return ColumnKind(
                "date",
                doubt=f"the dates of column {name!r} may begin with the day or with the month (such as "
                f'{first}), and no row shows which; the column is not used. Set data.dates = "day-first" or '
                '"month-first"',
            )
        if dates is not None:
            return dates
        if column.is_numeric:
            return self._digits(name)
        # All cells of a column of text are numbers only where a Parquet file declares them as text.
        number = self._number(name) if column.num_non_numbers != 0 else None
        if number is not None and not self._is_code(number, name):
            return number
        if words := word_kinds.boolean_words(column):
            return ColumnKind("boolean", f"{words[0]} and {words[1]}", words=words)
        if lists := find_list(cells):
            return ColumnKind("list", lists.describe(), list_parts=lists)
        note = self._near_miss(name)
        if word_kinds.is_free_text(column, cells):
            return ColumnKind("text", note)
        if word_kinds.is_text_id(column, 100 * _MAX_VOCABULARY):
            own = "nearly every row has its own text (an id or free text)"
            return ColumnKind("id", "; ".join(filter(None, (own, note))))
        return ColumnKind("category", note)

    def _is_code(self, number: ColumnKind, name: str) -> bool:
        """Returns whether the numbers of a text column are rather codes or ids, such as `4711AB`."""
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        written = number.number_format
        if written is None or written.currency or written.clock:
            return False
        if number.moments and number.moments.num_unreadable:
            return word_kinds.is_code(column, cells)
        if word_kinds.is_text_id(column, 100 * _MAX_VOCABULARY) and cells.all_match(_SERIAL_NUMBER):
            return True
        is_odd = bool(written.unit) or cells.all_match(_GROUPS_OF_DIGITS)
        return is_odd and word_kinds.is_code(column, cells)

    def _near_miss(self, name: str) -> str:
        """Explains why a column of amounts or decimals is not read as numbers."""
        formats, cells = self._number_formats(name), ColumnCells(self._profile, name)
        num_values = self._profile.columns[name].num_values
        if not formats.num_misfits or formats.best is None:
            return ""
        others = f"others ({number_kinds.describe_format(cells, formats.best)})"
        if formats.best in (POINT, COMMA):
            if 2 * cells.count(_FRACTION) < num_values:
                return ""
            others = "numbers in the other cells"
        return (
            f"not read as numbers: {formats.num_misfits} of {num_values} cells "
            f"{'does' if formats.num_misfits == 1 else 'do'} not fit the {others}, the first: "
            f"{self._first_unreadable(name, formats.best)}"
        )

    def _number_formats(self, name: str) -> FoundFormats:
        if name not in self._found:
            self._found[name] = number_kinds.find_formats(ColumnCells(self._profile, name))
        return self._found[name]

    def as_given(self, name: str, use: ColumnUse) -> ColumnKind:
        column = self._profile.columns[name]
        if use in ("ignore", "id"):
            return ColumnKind("id", f"[columns] says {use}", is_given=True)
        if not column.num_values:
            return ColumnKind("empty", "has no values", is_given=True)
        kind: ColumnKind | None
        if use == "number":
            kind = ColumnKind("number") if column.is_numeric else None
            kind = self._number(name) or kind
            if kind is None:
                raise BadInputError(self._why_no_number(name))
        elif use == "date":
            kind = self._date_as_given(name)
        elif use == "list":
            lists = find_list(ColumnCells(self._profile, name), is_given=True)
            if lists is None:
                raise BadInputError(
                    f'{columns_entry(name, "list")}: no cell has a ";", "|" or "," between parts, such as '
                    f"{self._profile.find_cell(name, lambda text: not is_missing(text))}."
                )
            kind = ColumnKind("list", lists.describe(), list_parts=lists)
        elif use == "text":
            kind = ColumnKind("text")
        else:
            code = word_kinds.why_code(column, ColumnCells(self._profile, name))
            words = word_kinds.boolean_words(column)
            kind = ColumnKind(
                "boolean" if words else "category", code or "", words=words, keeps_text="zero" in (code or "")
            )
        return ColumnKind(**{**vars(kind), "is_given": True})

    def _date_as_given(self, name: str) -> ColumnKind:
        try:
            kind = self._find_dates(name, is_given=True)
        except date_kinds.AmbiguousDatesError as error:
            raise BadInputError(
                f"{columns_entry(name, 'date')}: no row shows whether the day or the month is first. Set "
                'data.dates = "day-first" or "month-first".'
            ) from error
        if kind is None:
            raise BadInputError(self._why_no_date(name))
        return kind

    def _find_dates(self, name: str, is_given: bool = False) -> ColumnKind | None:
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        dates = date_kinds.recognise_dates(column, cells, self._dates, is_given)
        if dates is None:
            return None
        note, doubt = dates.date_format.name.replace("-", " "), None
        if invalid := dates.days.num_unreadable:
            cell = date_kinds.first_unreadable(cells, dates.date_format)
            first = self._profile.find_cell(name, lambda text: text == cell)
            if re.match(dates.date_format.pattern, cell):
                are = "is" if invalid == 1 else "are"
                note += f"; {invalid} of {column.num_values} cells {are} not in the calendar and "
                note += f"{'counts' if invalid == 1 else 'count'} as missing, the first: {first}"
            else:
                note, doubt = self._with_misfits(name, note, invalid, "date", first)
        return ColumnKind(
            "date",
            note,
            date_format=dates.date_format.name,
            moments=dates.days,
            unreadable=_unreadable(cells, CellFormat(date=dates.date_format.name)) if invalid else (),
            has_time=dates.has_time,
            keeps_text=column.type == "float",  # float32 would round seconds to minutes
            doubt=doubt,
        )

    def _digits(self, name: str) -> ColumnKind:
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        if column.type == "integer":
            if word_kinds.is_row_number(column, _MIN_ROWS_OF_RANGE):
                return ColumnKind("id", "numbers the rows")
            if code := word_kinds.why_code(column, cells):
                return ColumnKind("category", code, keeps_text="zero" in code)
        elif self._of_file == "," and cells.all_match(COMMA.pattern):
            return self._in_format(name, COMMA) or ColumnKind("number")
        return ColumnKind("number")

    def _number(self, name: str) -> ColumnKind | None:
        """Returns the kind of a text column that holds numbers; None if it does not."""
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        if column.is_numeric and not (self._of_file == "," and column.type == "float"):
            return None
        candidates = self._number_formats(name)
        if not candidates.formats:
            return None
        if len(candidates.formats) == 1:
            return self._in_format(name, candidates.formats[0])
        mark = self._of_file or "."
        kind = self._in_format(
            name, next(candidate for candidate in candidates.formats if candidate.decimal == mark)
        )
        if kind is None or self._of_file is not None or not cells.count("[0-9][.,][0-9]"):
            return kind
        first = self._profile.find_cell(name, lambda text: "," in text or "." in text)
        doubt = (
            f"{kind.doubt or f'column {name!r}: {kind.note}'}. The file does not show whether the mark in "
            f'{first} is a decimal mark: set data.decimal = "." or ","'
        )
        return replace(kind, note=f"{kind.note}; decimal mark not certain", doubt=doubt)

    def _in_format(self, name: str, number_format: NumberFormat) -> ColumnKind | None:
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        moments = number_kinds.measure(cells, number_format)
        if moments is None:
            return None
        note, doubt = number_kinds.describe_format(cells, number_format), None
        if moments.num_unreadable:
            first = self._first_unreadable(name, number_format)
            note, doubt = self._with_misfits(name, note, moments.num_unreadable, "number", first)
        return ColumnKind(
            "number",
            note,
            number_format=number_format,
            moments=moments,
            unreadable=_unreadable(cells, CellFormat(number_format)) if moments.num_unreadable else (),
            keeps_text=column.is_numeric,
            doubt=doubt,
        )

    def _with_misfits(
        self, name: str, note: str, num_misfits: int, what: str, first: Cell
    ) -> tuple[str, str]:
        """Returns a note with the number of cells that cannot be read, and a doubt with all about them."""
        cells = f"{note}; {num_misfits} of {self._profile.columns[name].num_values} cells"
        count, are = "count", f"are not such {what}s"
        if num_misfits == 1:
            count, are = "counts", f"is not such a {what}"
        doubt = f"column {name!r}: {cells} {are} and {count} as missing, the first: {first}. {_ADVICE}"
        return f"{cells} {count} as missing", doubt

    def _first_unreadable(self, name: str, number_format: NumberFormat) -> Cell:
        cell = number_kinds.first_unreadable(ColumnCells(self._profile, name), number_format)
        return self._profile.find_cell(name, lambda text: text == cell)

    def _why_no_date(self, name: str) -> str:
        column, cells = self._profile.columns[name], ColumnCells(self._profile, name)
        fits = {item: cells.count(item.pattern) for item in TEXT_FORMATS}
        best = max(fits, key=lambda item: fits[item])
        alike = f" ({fits[best]} are {best.name.replace('-', ' ')})" if fits[best] else ""
        cell = None if column.is_numeric else date_kinds.first_unreadable(cells, best)
        first = self._profile.find_cell(name, lambda text: text == cell or not (cell or is_missing(text)))
        return (
            f"{columns_entry(name, 'date')}: no format fits all {column.num_values} cells, such as "
            f"{first}{alike}. Correct such cells in the file, or leave them empty. Supported formats: "
            "year-month-day (20140301, 2014-03-01), day or month first (01.03.2014, 3/1/2014, 1 Mar 2014), "
            "each optionally followed by a time of day, months (2014-03, Mar 2014), quarters (2014Q1), weeks "
            "(2014-W09), and seconds or milliseconds since 1970."
        )

    def _why_no_number(self, name: str) -> str:
        formats, num_values = self._number_formats(name), self._profile.columns[name].num_values
        best, num_misfits = formats.best or NumberFormat(self._of_file or "."), formats.num_misfits
        others = f", nor are {num_misfits - 1} others" if num_misfits > 2 else ", nor is 1 other"
        others = f"{others} of {num_values} cells" if num_misfits > 1 else ""
        alike = ""
        if formats.best:
            text = number_kinds.describe_format(ColumnCells(self._profile, name), best)
            alike = f" Most cells are {text}."
        return (
            f"{columns_entry(name, 'number')}: {self._first_unreadable(name, best)} is not a number{others}."
            f'{alike} Correct such cells in the file, or leave them empty; or say "category" or "text".'
        )


def _unreadable(cells: ColumnCells, cell_format: CellFormat) -> tuple[str, ...]:
    """Returns the different cells that are not in a format, the first of many."""
    unreadable = (
        text
        for values, _ in cells.chunks()
        for text in values.filter(~cell_format.is_read(values)).to_pylist()
    )
    return tuple(itertools.islice(dict.fromkeys(unreadable), _MOST_UNREADABLE))


def text_columns(kinds: Mapping[str, ColumnKind]) -> tuple[str, ...]:
    """Returns the columns that CsvExampleGen has to keep as text."""
    return tuple(name for name, kind in kinds.items() if kind.keeps_text)


def to_date_format(kind: ColumnKind) -> DateFormat | None:
    """Returns the format of a column's dates; None if it holds none."""
    return None if kind.date_format is None else DateFormat(kind.date_format)
