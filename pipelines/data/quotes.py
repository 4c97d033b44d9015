"""Checks on the quotes of a CSV file: a field that does not end, and one that has swallowed rows.

A stray quote at the start of a field makes one field of everything up to the next quote, line breaks
included. A text with line breaks looks the same, and is valid. The lines tell them apart: the lines of a text
do not look like rows of this file.
"""

import codecs
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from components.example_gen.file_names import is_parquet
from pipelines.data.cells import RawRow, raw_rows
from pipelines.data.dialect import COMMAS, MAX_LONG_CHARS, Dialect
from pipelines.data.opening import open_bytes, open_text
from pipelines.errors import BadInputError, counted, shown

_BLOCK_BYTES = 8 << 20
_LINE_FEED = 10
_MAX_SAMPLE_LINES = 20_000
_MIN_NUMBER_SHARE = 0.9
_MAX_WORDS = 50
_MIN_REPETITIONS = 4
_MIN_LINES_BY_COUNT = 5
_MIN_ROWS = 10  # fewer say too little of a column


@dataclass(frozen=True)
class QuoteFindings:
    # True if CsvExampleGen would read quotes within a field as the start of a field.
    is_irregular: bool = False
    doubts: tuple[str, ...] = ()  # Fields that may have swallowed rows, one sentence each


def check_quotes(
    file: Path, header: Sequence[str], dialect: Dialect = COMMAS, quote_is_given: bool = False
) -> QuoteFindings:
    """Checks the quotes of a file.

    Source: TFX's CsvExampleGen joins lines until the number of quotes is even.
    """
    if is_parquet(file):
        return QuoteFindings()
    search = QuoteSearch(dialect)
    with open_bytes(file) as raw:
        while block := raw.read(_BLOCK_BYTES):
            search.update(block)
    if not search.finds_any():
        return QuoteFindings()
    return examine_quotes(file, header, dialect, quote_is_given)


def examine_quotes(
    file: Path, header: Sequence[str], dialect: Dialect, quote_is_given: bool
) -> QuoteFindings:
    """Checks the quotes of a file row by row."""
    shape = _RowShape(file, len(header), dialect)
    irregular, doubts = False, []
    for row in raw_rows(file, dialect):
        field = _Field(file, header, row)
        if sum(line.count(dialect.quote) for line in row.lines) % 2:
            irregular = True
            if ends_inside_quotes(row.lines, dialect):
                raise BadInputError(field.describe_open())
        if len(row.lines) > 1:
            num_fitting = sum(map(shape.fits, row.lines))
            if shape.are_swallowed(row.lines, num_fitting) and not quote_is_given:
                raise BadInputError(field.describe_swallowed(num_fitting, dialect.quote))
            if 2 * num_fitting >= max(len(row.lines), 3):
                doubts.append(field.describe_doubt(num_fitting))
        position = text_after_quotes(row.lines, dialect)
        if position is not None:
            if not quote_is_given:
                raise BadInputError(field.describe_text_after(position, dialect.quote))
            irregular = True
            doubts.append(field.describe_text_read(position))
    return QuoteFindings(irregular, tuple(doubts))


class QuoteSearch:
    """Finds quotes other than pairs around whole fields of a line."""

    def __init__(self, dialect: Dialect):
        self._quote = ord(dialect.quote)
        self._ends = np.frombuffer(f"{dialect.delimiter}{dialect.quote}\r\n".encode(), np.uint8)
        self._num_on_line = self._num_quotes = 0
        self._is_closed = False  # the text so far ends in a quote that closes a field
        self._last = _LINE_FEED
        self._is_start = True
        self._found = False

    def update(self, block: bytes) -> None:
        """Looks at the next bytes of the text."""
        if self._is_start:
            block = block.removeprefix(codecs.BOM_UTF8)
        if self._found or not block:
            return
        self._is_start = False
        content = np.frombuffer(block, np.uint8)
        if self._is_closed and content[0] not in self._ends:
            self._found = True
        marks = np.flatnonzero((content == self._quote) | (content == _LINE_FEED))
        is_end = content[marks] == _LINE_FEED
        quotes, ends = marks[~is_end], np.flatnonzero(is_end)
        num_before = ends - np.arange(len(ends))  # quotes of this block before each end of a line
        self._found |= bool((np.diff(num_before, prepend=-self._num_on_line) % 2).any())
        self._num_on_line = len(quotes) - num_before[-1] if len(ends) else self._num_on_line + len(quotes)
        closing = quotes[(self._num_quotes + 1) % 2 :: 2]
        opening = quotes[self._num_quotes % 2 :: 2]  # or the second one of two
        is_first = bool(len(opening)) and opening[0] == 0
        precedes = content[opening[int(is_first) :] - 1]
        self._found |= not np.isin(precedes, self._ends).all()
        self._found |= is_first and self._last not in self._ends
        self._last = int(content[-1])
        self._num_quotes += len(quotes)
        self._is_closed = bool(len(closing)) and closing[-1] == len(content) - 1
        follows = content[closing[: len(closing) - self._is_closed] + 1]
        self._found |= not np.isin(follows, self._ends).all()

    def finds_any(self) -> bool:
        """Returns whether there are such quotes; all of the text was looked at."""
        return self._found or self._num_on_line % 2 == 1


def text_after_quotes(lines: Sequence[str], dialect: Dialect) -> int | None:
    """Returns the position of the first cell with text between its closing quote and the next delimiter.

    Python's csv module and pandas join both; a quote that is escaped by a backslash looks like that.
    """
    if not any(dialect.quote in line for line in lines):
        return None
    quote, text = re.escape(dialect.quote), "".join(lines).rstrip("\r\n")
    blanks = " \t".replace(dialect.delimiter, "")
    # Not `(?:[^"]|"")*`, for which the module `re` needs memory for each character.
    quoted = re.compile(f"{quote}[^{quote}]*(?:{quote}{quote}[^{quote}]*)*{quote}[{blanks}]*")
    position = start = 0
    while start <= len(text):
        field = quoted.match(text, start)
        end = text.find(dialect.delimiter, field.end() if field else start)
        end = len(text) if end < 0 else end
        if field is not None and field.end() < end:
            return position
        position, start = position + 1, end + 1
    return None


class _RowShape:
    """Shape of a file's rows: the number of their fields, and the kinds of their values."""

    def __init__(self, file: Path, num_columns: int, dialect: Dialect):
        self._num_columns = num_columns
        self._dialect = dialect
        with open_text(file, errors="replace") as stream:
            next(stream)
            rows, num_chars = [], 0
            for line in islice(stream, _MAX_SAMPLE_LINES):
                num_chars += len(line)
                if num_chars > MAX_LONG_CHARS:
                    break
                if dialect.quote not in line:
                    rows.append(self._split(line))
        whole = [row for row in rows if len(row) == num_columns]
        columns = zip(*whole, strict=True) if len(whole) >= _MIN_ROWS else ()
        kinds = {index: _kind(cells) for index, cells in enumerate(columns)}
        self._kinds = {index: kind for index, kind in kinds.items() if kind is not None}

    def fits(self, line: str) -> bool:
        """Returns whether a line may be a row: the right number of fields, with the usual values."""
        return any(
            all(kind.fits(cells[index]) for index, kind in self._kinds.items())
            for cells in self._readings(line)
        )

    def are_swallowed(self, lines: Sequence[str], num_fitting: int) -> bool:
        """Returns whether the lines of one row are several rows."""
        if not self._kinds:  # the number of fields is the only evidence
            return num_fitting == len(lines) >= _MIN_LINES_BY_COUNT
        ends = (lines[0], lines[-1])  # either of them may contain valid quotes and new words
        return 2 * num_fitting >= len(lines) and all(map(self._readings, ends))

    def _readings(self, line: str) -> list[list[str]]:
        """Returns the fields of a line, with and without quotes, where their number is right."""
        if self._num_columns < 2:
            return []
        reader = self._dialect.reader([line])
        readings = (self._split(line), [cell.strip() for cell in next(reader, [])])
        return [cells for cells in readings if len(cells) == self._num_columns]

    def _split(self, line: str) -> list[str]:
        quote = self._dialect.quote
        cells = line.rstrip("\r\n").split(self._dialect.delimiter)
        return [cell.strip().strip(quote) for cell in cells]


@dataclass(frozen=True)
class _Kind:
    """Kind of a column's cells: numbers, words, or both."""

    has_numbers: bool
    words: frozenset[str]

    def fits(self, cell: str) -> bool:
        """Returns whether a cell may belong to the column."""
        return cell in self.words or (self.has_numbers and _is_number(cell))


def _kind(cells: Sequence[str]) -> _Kind | None:
    """Returns the kind of a column with numbers, or with few words; None for any other."""
    values = [cell for cell in cells if cell]
    if values and sum(map(_is_number, values)) >= _MIN_NUMBER_SHARE * len(values):
        return _Kind(True, frozenset(cell for cell in cells if not _is_number(cell)))
    words = frozenset(cells)
    few = len(words) <= _MAX_WORDS and _MIN_REPETITIONS * len(words) <= len(cells)
    return _Kind(False, words) if few else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class _Field:
    """A quoted field with line breaks, as messages describe it."""

    file: Path
    header: Sequence[str]  # Column names of the file
    row: RawRow

    def describe_open(self) -> str:
        return (
            f"{self._where(len(self.row.cells) - 1)} is never closed: "
            f"{counted(len(self.row.lines), 'line')}, up to the end of the file, would be one cell. Close "
            "the quote, or remove it."
        )

    def describe_swallowed(self, num_fitting: int, quote: str) -> str:
        setting = f"'{quote}'" if quote == '"' else f'"{quote}"'
        return (
            f"{self._where()} {self._extent(num_fitting)}: a stray quote seems to turn {len(self.row.lines)} "
            "lines into one row. Remove the quote, or double it inside a quoted field. If the cell really "
            f"has these lines, set [data] quote = {setting}."
        )

    def describe_text_after(self, position: int, quote: str) -> str:
        setting = f"'{quote}'" if quote == '"' else f'"{quote}"'
        return (
            f"{self._where(position)} has text after the quote that closes it. Double each quote inside the "
            "field, even after a backslash. If the text belongs to the field as it is, set [data] quote = "
            f"{setting}."
        )

    def describe_text_read(self, position: int) -> str:
        return f"{self._where(position)} has text after the quote that closes it, which is read as part of it"

    def describe_doubt(self, num_fitting: int) -> str:
        return (
            f"{self._where()} {self._extent(num_fitting)}. They are read as one row; remove the quote if it "
            "is stray"
        )

    def _extent(self, num_fitting: int) -> str:
        num_lines = len(self.row.lines)
        return (
            f"continues up to line {self.row.line + num_lines - 1}, over {num_lines} lines, of which "
            f"{num_fitting} look like rows of this file"
        )

    def _where(self, index: int | None = None) -> str:
        if index is None:
            breaks = (i for i, cell in enumerate(self.row.cells) if len(cell.splitlines()) > 1)
            index = next(breaks, 0)
        name = self.header[min(index, len(self.header) - 1)]
        return (
            f"{self.file}, line {self.row.line}, column {name!r}: the quoted field that starts with "
            f"{shown(self.row.cells[index])!r}"
        )


def ends_inside_quotes(lines: Sequence[str], dialect: Dialect) -> bool:
    """Returns whether a row ends within quotes."""
    try:
        list(dialect.reader(lines, strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False
