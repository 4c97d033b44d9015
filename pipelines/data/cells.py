"""Finds the cells that a message has to name: file, line, and value."""

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipelines.data.dialect import COMMAS, Dialect
from pipelines.errors import shown

MAX_FIELD_CHARS = 131_072
"""CsvExampleGen reads with Python's csv module, whose limit this is."""


@dataclass(frozen=True)
class Cell:
    """One cell of a file.

    Attributes:
      file: The file.
      line: Line on which its row starts, the header's being 1.
      value: Its text, without white space around it.
    """

    file: Path
    line: int
    value: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {shown(self.value)!r}"


def find_cell(
    files: Iterable[Path],
    position: int,
    wanted: Callable[[str], bool],
    dialect: Dialect = COMMAS,
) -> Cell:
    """Returns the first cell of a column that is wanted.

    Args:
      files: They have the column.
      position: Of the column, from 0.
      wanted: Takes the text without white space around it.
      dialect: Of the files.

    Raises:
      LookupError: There is none.
    """
    for file in files:
        for line, row in list_rows(file, dialect):
            if position < len(row) and wanted(row[position].strip()):
                return Cell(file, line, row[position].strip())
    raise LookupError(f"There is no such cell in column {position} of the files.")


def list_rows(file: Path, dialect: Dialect = COMMAS) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows below the header with the lines on which they start."""
    with file.open(encoding="utf-8-sig", newline="") as stream, any_field_size():
        reader = csv.reader(stream, delimiter=dialect.delimiter, quotechar=dialect.quote)
        start, is_header = 1, True
        for row in reader:
            if row and not is_header:
                yield start, row
            is_header = is_header and not row
            start = reader.line_num + 1


@contextmanager
def any_field_size() -> Iterator[None]:
    """Lets Python's csv module read fields of any size."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
