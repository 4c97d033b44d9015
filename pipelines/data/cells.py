"""Rows and cells as messages name them: file, line, and value."""

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.opening import open_text
from pipelines.errors import shown

MAX_FIELD_CHARS = 131_072
"""The field limit of Python's csv module, with which CsvExampleGen reads."""

_MAX_DESCRIBED_CHARS = 20 << 20
"""Size up to which a longer field is read to describe it, and the row that it may have swallowed."""


@dataclass(frozen=True)
class Cell:
    file: Path
    line: int  # Line on which its row starts; the header is line 1
    value: str  # Text of the cell, without white space around it

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {shown(self.value)!r}"


@dataclass(frozen=True)
class RawRow:
    line: int  # Line on which it starts; the header is usually on line 1
    lines: list[str]  # Its lines as they are written, with their ends
    cells: list[str]  # empty for a blank line


def find_cell(
    files: Iterable[Path], position: int, wanted: Callable[[str], bool], dialect: Dialect = COMMAS
) -> Cell:
    """Returns the first matching cell of a column."""
    for file in files:
        for line, row in list_rows(file, dialect):
            if position < len(row) and wanted(row[position].strip()):
                return Cell(file, line, row[position].strip())
    raise LookupError(f"There is no such cell in column {position} of the files.")


def list_rows(file: Path, dialect: Dialect = COMMAS) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows below the header with the lines on which they start."""
    with open_text(file) as stream, any_field_size():
        reader = dialect.reader(stream, file)
        start, is_header = 1, True
        for row in reader:
            if row and not is_header:
                yield start, row
            is_header = is_header and not row
            start = reader.line_num + 1


def raw_rows(file: Path, dialect: Dialect = COMMAS, errors: str = "strict") -> Iterator[RawRow]:
    """Yields all rows, with the lines that they are written on, the header and blank lines included."""
    lines: list[str] = []

    def recorded(stream: Iterable[str]) -> Iterator[str]:
        for line in stream:
            lines.append(line)
            yield line

    with open_text(file, errors=errors) as stream, any_field_size():
        reader = dialect.reader(recorded(stream), file)
        start = 1
        for cells in reader:
            yield RawRow(start, list(lines), cells)
            lines.clear()
            start = reader.line_num + 1


@contextmanager
def any_field_size() -> Iterator[None]:
    """Lets Python's csv module read fields of almost any size; `Dialect.reader` reports larger ones."""
    limit = csv.field_size_limit(_MAX_DESCRIBED_CHARS)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
