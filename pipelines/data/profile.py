"""The profile of CSV files from one streaming pass: columns, counts, and a fingerprint."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from components.example_gen.file_names import is_parquet
from pipelines.data import byte_checks, faults
from pipelines.data.cell_store import CellStore
from pipelines.data.cells import MAX_FIELD_CHARS, Cell, find_cell
from pipelines.data.column_profile import (
    ColumnProfile,
    ColumnScan,
    ColumnType,
    fits_float32,
    fits_int64,
    is_number,
)
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.file_states import FileState, check_unchanged, read_states
from pipelines.data.missing import is_missing
from pipelines.data.odd_rows import has_odd_row, refuse_odd_row
from pipelines.data.opening import known_types
from pipelines.data.quotes import QuoteFindings, check_quotes
from pipelines.data.reading import read_batches
from pipelines.data.row_sample import RowSample
from pipelines.errors import BadInputError, counted

UNNAMED = "unnamed"
"""Name of a column whose header is empty, as pandas writes it for an index."""

_MAX_QUOTE_NOTES = 3
_NUM_THREADS = 2  # that look at columns; most of that is work without Python's lock


@dataclass
class CsvProfile:
    """Profile of the files of a run."""

    files: list[Path]
    columns: dict[str, ColumnProfile]  # Profiles by column name, in the order of the header
    num_rows: int  # Number of rows below the headers
    fingerprint: str  # SHA-256 over the names and contents of the files
    has_byte_order_mark: bool  # True if a file starts with the UTF-8 byte order mark
    # True if a header leaves a name empty; the column is called `unnamed` here.
    has_unnamed_column: bool = False
    # True if every first line is the names joined by commas, without quotes.
    has_plain_header: bool = True
    # True if there are quotes within fields that do not start with one.
    has_irregular_quotes: bool = False
    # Quoted fields that may have swallowed rows, one sentence each.
    quote_doubts: tuple[str, ...] = ()
    dialect: Dialect = COMMAS  # Delimiter and quote of the files
    # Types that Parquet files give to columns: `string` or `float`.
    known_types: dict[str, ColumnType] = field(default_factory=dict)
    # User's files by their UTF-8 copies, if they are in another encoding.
    originals: dict[Path, Path] = field(default_factory=dict)
    num_set_aside: int = 0  # Number of rows that could not be read, and are not in `files`
    # States of the files, and of `originals`, before they were examined.
    states: dict[Path, FileState] = field(default_factory=dict)
    # Cells of the columns with too many values to count; None reads the files again.
    cells: CellStore | None = field(default=None, repr=False, compare=False)
    # Rows of the files, all or some; None after `without_cells`.
    sample: RowSample | None = field(default=None, repr=False, compare=False)

    def without_cells(self) -> "CsvProfile":
        """Returns the profile without cells of the files, which take memory and disk."""
        return replace(self, cells=None, sample=None)

    @property
    def digests(self) -> list[str]:
        """SHA-256 of the content of each file."""
        return [self.states[file].sha256 for file in self.files]

    @property
    def user_files(self) -> list[Path]:
        """The user's own files, even if UTF-8 copies are read."""
        return [self.originals.get(file, file) for file in self.files]

    def check_unchanged(self) -> None:
        """Checks that the user's files have not changed since they were examined."""
        check_unchanged({file: self.states[file] for file in self.user_files})

    def find_cell(self, column: str, wanted: Callable[[str], bool]) -> Cell:
        """Returns the first cell of a column whose text matches; there must be one."""
        cell = find_cell(self.files, list(self.columns).index(column), wanted, self.dialect)
        return replace(cell, file=self.originals.get(cell.file, cell.file))

    def find_non_number(self, column: str) -> Cell:
        """Returns the first cell of a text column that is not a number."""
        return self.find_cell(column, lambda text: not is_missing(text) and not is_number(text))

    def find_beyond_float32(self, column: str) -> Cell:
        """Returns the first number of a column that float32 cannot hold."""
        return self.find_cell(
            column,
            lambda text: not is_missing(text) and is_number(text) and not fits_float32(text),
        )

    def notes(self) -> list[str]:
        """Returns one sentence for each interpretation that may surprise the author of the files."""
        notes = list(self.quote_doubts[:_MAX_QUOTE_NOTES])
        if more := len(self.quote_doubts) - len(notes):
            notes.append(f"{counted(more, 'more quoted field')} may have swallowed rows")
        for column in self.columns.values():
            if column.mixed_files is not None:
                numbers, text = (self.originals.get(file, file) for file in column.mixed_files)
                notes.append(
                    f"column {column.name!r} holds numbers in {numbers} and other text in {text}; it is "
                    "read as text in all files"
                )
            if column.is_numeric and column.holds_beyond_int64 and column.stored_as == "string":
                cell = self.find_cell(column.name, lambda text: not fits_int64(text))
                notes.append(
                    f"column {column.name!r} is stored as text: int64 cannot hold all of its integers, the "
                    f"first: {cell}. The generic model reads them as numbers all the same"
                )
            if column.is_numeric and column.num_beyond_float32:
                count = "counts" if column.num_beyond_float32 == 1 else "count"
                notes.append(
                    f"column {column.name!r}: {counted(column.num_beyond_float32, 'number')} that float32 "
                    f"cannot hold {count} as missing, the first: "
                    f"{self.find_beyond_float32(column.name)}"
                )
        return notes


def profile_csv(
    files: list[Path],
    dialect: Dialect = COMMAS,
    states: Mapping[Path, FileState] | None = None,
    quote_is_given: bool = False,
) -> CsvProfile:
    """Returns the profile of `files`, which share one header.

    `states`: states of the files. Default: they are read.
    """
    with byte_checks.readable(files[0]):
        return _profile(files, dialect, dict(states or read_states(files)), quote_is_given)


def _profile(
    files: list[Path], dialect: Dialect, states: dict[Path, FileState], quote_is_given: bool
) -> CsvProfile:
    headers = {file: faults.read_header(file, dialect) for file in files}
    first = files[0]
    for file, header in headers.items():
        if header != headers[first]:
            raise BadInputError(
                faults.describe_header_difference(first, headers[first], file, header)
            )
    scan = TableScan(headers[first], known_types_of(files))
    quotes = []
    for file in files:
        byte_checks.check_bytes(file, dialect)
        quotes.append(check_quotes(file, headers[first], dialect, quote_is_given))
        for batch in read_batches(file, headers[first], dialect):
            if not is_parquet(file) and has_odd_row(batch, headers[first]):
                refuse_odd_row(file, headers[first], dialect)
            scan.add(batch)
            if scan.has_long_cell:
                raise BadInputError(
                    faults.describe_fault(file, headers[first], "a long field", dialect)
                )
        scan.end_file(file)
    has_marks = [faults.has_byte_order_mark(file) for file in files]
    are_plain = [faults.has_plain_header(file, headers[file], dialect) for file in files]
    return scan.profile(states, dialect, quotes, any(has_marks), all(are_plain))


class TableScan:
    """Accumulates the profile of files, batch by batch."""

    def __init__(self, header: Sequence[str], known: Mapping[str, ColumnType]):
        self._header, self._known = header, dict(known)
        self._cells, self._sample = CellStore(), RowSample(len(header))
        names = [name or UNNAMED for name in header]
        self._columns = {name: ColumnScan(name, known.get(name), self._cells) for name in names}
        self._files: list[Path] = []
        self._num_rows = self._rows_before = 0

    @property
    def has_long_cell(self) -> bool:
        """True if a cell is longer than CsvExampleGen reads."""
        return any(scan.longest > MAX_FIELD_CHARS for scan in self._columns.values())

    def add(self, batch: Any) -> None:
        """Adds the next rows (record batch of strings) of a file."""
        pairs = zip(self._columns.values(), batch.columns, strict=True)
        with ThreadPoolExecutor(_NUM_THREADS) as threads:
            for _ in threads.map(lambda pair: pair[0].update(pair[1]), pairs):
                pass  # an error of a thread is raised here
        self._sample.add(batch)
        self._num_rows += len(batch)

    def end_file(self, file: Path) -> None:
        """Ends the rows of a file."""
        if self._num_rows == self._rows_before and not is_parquet(file):
            raise BadInputError(f"{file}: there is a header (line 1) but no row below it.")
        for scan in self._columns.values():
            scan.end_file(file)
        self._files.append(file)
        self._rows_before = self._num_rows

    def profile(
        self,
        states: dict[Path, FileState],
        dialect: Dialect,
        quotes: Sequence[QuoteFindings],
        has_byte_order_mark: bool,
        has_plain_header: bool,
    ) -> CsvProfile:
        """Returns the finished profile."""
        if not self._num_rows:
            raise BadInputError(f"{self._files[0]}: there is no row.")
        return CsvProfile(
            files=self._files,
            columns={name: scan.profile() for name, scan in self._columns.items()},
            num_rows=self._num_rows,
            fingerprint=_fingerprint(self._files, states),
            has_byte_order_mark=has_byte_order_mark,
            has_unnamed_column="" in self._header,
            has_plain_header=has_plain_header,
            has_irregular_quotes=any(found.is_irregular for found in quotes),
            quote_doubts=tuple(doubt for found in quotes for doubt in found.doubts),
            dialect=dialect,
            known_types=self._known,
            states=states,
            cells=self._cells,
            sample=self._sample,
        )


def known_types_of(files: Sequence[Path]) -> dict[str, ColumnType]:
    """Returns the types that files give to columns; text in one of them is text in all."""
    known: dict[str, ColumnType] = {}
    for name, found in (item for file in files for item in known_types(file).items()):
        name = name.strip() or UNNAMED
        known[name] = "string" if "string" in (found, known.get(name)) else "float"
    return known


def _fingerprint(files: Sequence[Path], states: Mapping[Path, FileState]) -> str:
    """Returns a SHA-256 over the names and contents of files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + bytes.fromhex(states[file].sha256))
    return digest.hexdigest()
