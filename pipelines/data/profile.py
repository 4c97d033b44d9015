"""The profile of CSV files from one streaming pass: columns, counts, and a fingerprint."""

import codecs
import contextlib
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from components.beam.ahead import map_ahead
from components.errors import SettingError
from components.example_gen.file_names import is_parquet
from components.hashed_reader import HashedReader
from pipelines.data import byte_checks, faults
from pipelines.data.cells import MAX_FIELD_CHARS, Cell, find_cell
from pipelines.data.column_profile import (
    CellStore,
    ColumnProfile,
    ColumnScan,
    ColumnType,
    fits_float32,
    fits_int64,
    is_number,
)
from pipelines.data.dialect import (
    COMMAS,
    MAX_CHARS,
    MAX_LINES,
    MAX_LONG_CHARS,
    MIN_LINES,
    Dialect,
    detect_from_lines,
)
from pipelines.data.faults import has_odd_row, refuse_odd_row
from pipelines.data.file_states import FileState, check_unchanged, state_of_hashed
from pipelines.data.missing import is_missing
from pipelines.data.opening import known_types
from pipelines.data.quotes import QuoteFindings, QuoteSearch, check_quotes, examine_quotes
from pipelines.data.reading import parse
from pipelines.data.row_copies import RowCopies, RowHashes
from pipelines.data.row_sample import RowSample
from pipelines.errors import BadInputError, counted

UNNAMED = "unnamed"
"""Name of a column whose header is empty, as pandas writes it for an index."""

_MAX_QUOTE_NOTES = 3
_HEAD_BLOCK_BYTES = 1 << 20
# Of long lines: at most four bytes for each character, and the rest of the last line.
_MIN_HEAD_BYTES = 8 * MAX_CHARS
_MAX_HEAD_BYTES = 4 * MAX_LONG_CHARS
_LINE_END = re.compile(rb"\r\n?|\n")
_ODD_ROW = "a row that is not data"
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
    has_plain_header: bool = True  # True if every first line is the names joined by commas, without quotes
    has_irregular_quotes: bool = False  # True if there are quotes within fields that do not start with one
    quote_doubts: tuple[str, ...] = ()  # Quoted fields that may have swallowed rows, one sentence each
    dialect: Dialect = COMMAS  # Delimiter and quote of the files
    # Types that Parquet files give to columns: `string` or `float`.
    known_types: dict[str, ColumnType] = field(default_factory=dict)
    # User's files by their UTF-8 copies, if they are in another encoding.
    originals: dict[Path, Path] = field(default_factory=dict)
    copies: RowCopies = field(default_factory=RowCopies)  # Rows that are equal
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
            column, lambda text: not is_missing(text) and is_number(text) and not fits_float32(text)
        )

    def notes(self) -> list[str]:
        """Returns one sentence for each interpretation that may surprise the author of the files."""
        notes = list(self.quote_doubts[:_MAX_QUOTE_NOTES])
        if more := len(self.quote_doubts) - len(notes):
            notes.append(f"{counted(more, 'more quoted field')} may contain several rows")
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
    """Returns the profile of UTF-8 files that share one header; an error names the line of a fault."""

    def locate(file: Path, header: list[str], fault: str | None) -> None:
        # The same order as in a spreadsheet: bytes explain quotes, and quotes explain rows.
        byte_checks.check_bytes(file, dialect)
        if fault is None:
            return
        check_quotes(file, header, dialect, quote_is_given)
        if fault is _ODD_ROW:
            refuse_odd_row(file, header, dialect)
        else:
            raise BadInputError(faults.describe_fault(file, header, fault, dialect))

    with byte_checks.readable(files[0]):
        headers = {file: faults.read_header(file, dialect) for file in files}
        for file, header in headers.items():
            if header != headers[files[0]]:
                raise BadInputError(
                    faults.describe_header_difference(files[0], headers[files[0]], file, header)
                )
        try:
            return _profile(files, lambda lines: dialect, quote_is_given, locate, states or {})
        except SettingError as error:  # such as a damaged gzip file
            raise BadInputError(str(error)) from error


def profile_clean_files(
    files: Sequence[Path], delimiter: str | None = None, quote: str | None = None
) -> CsvProfile | None:
    """Returns the profile of files in the detected dialect; None if one has a fault or is not UTF-8.

    It equals that of `profile_csv`, but each file is read only once. A file with line breaks in quotes, or
    with quotes within a field, is read once more for its quotes, and a Parquet file for its hash.
    """

    def give_up(file: Path, header: list[str], fault: str | None) -> None:
        raise _CloserLookError

    closer = (_CloserLookError, BadInputError, SettingError, OSError, pa.ArrowException)
    try:
        return _profile(
            files, lambda lines: detect_from_lines(lines, delimiter, quote), quote is not None, give_up, {}
        )
    except closer:
        return None  # profile_csv finds the fault again, and says where it is


class _CloserLookError(Exception):
    """A file may have a fault."""


def _profile(
    files: Sequence[Path],
    detect: Callable[[Iterable[str]], Dialect],
    quote_is_given: bool,
    look_closer: Callable[[Path, list[str], str | None], None],
    known_states: Mapping[Path, FileState],
) -> CsvProfile:
    """Reads each file once; `look_closer` is called where it may have a fault, and returns if it has none."""
    from components.example_gen.csv_text import as_csv

    states: dict[Path, FileState] = {}
    quotes: list[QuoteFindings] = []
    scan: TableScan | None = None
    header: list[str] = []
    dialect = COMMAS
    has_mark, is_plain = False, True
    for file in files:
        with file.open("rb") as raw:
            status = os.fstat(raw.fileno())
            content = _Hashed(raw, whole=is_parquet(file))
            text = _Text(as_csv(str(file), content.stream))
            if scan is None and not is_parquet(file):
                dialect = detect(text.head_lines("replace"))
            names = faults.parse_header(file, text.head_lines("surrogateescape"), dialect)
            if scan is None:
                header = names
                scan = TableScan(header, merge_known_types(files))
            if names != header or byte_checks.other_format(text.head) is not None:
                look_closer(file, header, None)
            has_mark |= text.head.startswith(codecs.BOM_UTF8)
            is_plain &= faults.is_plain_header(text.first_line(), header, dialect)
            search = None if is_parquet(file) else QuoteSearch(dialect)
            _add_rows(scan, file, text.checked(search, scan.hashes), header, dialect, look_closer)
            states[file] = known_states.get(file) or state_of_hashed(file, status, content.finish())
        if search is not None and search.finds_any():
            quotes.append(examine_quotes(file, header, dialect, quote_is_given))
        scan.end_file(file)
    if scan is None:
        raise ValueError("There is no file to profile.")
    return scan.profile(states, dialect, quotes, has_mark, is_plain)


def _add_rows(
    scan: "TableScan",
    file: Path,
    text: "_CheckedText",
    header: list[str],
    dialect: Dialect,
    look_closer: Callable[[Path, list[str], str | None], None],
) -> None:
    def examined(batch: Any) -> tuple[Any, bool]:
        return batch, text.is_csv and has_odd_row(batch, header)

    has_looked = False
    try:
        with contextlib.closing(map_ahead(examined, parse(text, len(header), dialect))) as batches:
            for batch, has_odd in batches:
                if text.is_odd and not has_looked:
                    look_closer(file, header, None)
                    has_looked = True  # at the whole file
                if has_odd:
                    look_closer(file, header, _ODD_ROW)
                scan.add(batch)
                if scan.has_long_cell:
                    look_closer(file, header, "a long field")
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        look_closer(file, header, str(error))
    if text.ends_odd() and not has_looked:
        look_closer(file, header, None)


class TableScan:
    """Accumulates the profile of files, batch by batch."""

    def __init__(self, header: Sequence[str], known_types: Mapping[str, ColumnType]):
        self._header, self._known = header, dict(known_types)
        self._cells, self._sample = CellStore(), RowSample(len(header))
        self.hashes = RowHashes()  # that take in the text of each file
        names = [name or UNNAMED for name in header]
        self._columns = {name: ColumnScan(name, known_types.get(name), self._cells) for name in names}
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
        if self._num_rows == self._rows_before and not is_parquet(file):
            raise BadInputError(f"{file}: there is a header (line 1) but no row below it.")
        for scan in self._columns.values():
            scan.end_file(file)
        self.hashes.end_file(self._num_rows - self._rows_before)
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
        if not self._num_rows:
            raise BadInputError(f"{self._files[0]}: there is no row.")
        digest = hashlib.sha256()
        for file in self._files:
            digest.update(file.name.encode() + b"\0" + bytes.fromhex(states[file].sha256))
        return CsvProfile(
            files=self._files,
            columns={name: scan.profile() for name, scan in self._columns.items()},
            num_rows=self._num_rows,
            fingerprint=digest.hexdigest(),
            has_byte_order_mark=has_byte_order_mark,
            has_unnamed_column="" in self._header,
            has_plain_header=has_plain_header,
            has_irregular_quotes=any(findings.is_irregular for findings in quotes),
            quote_doubts=tuple(doubt for findings in quotes for doubt in findings.doubts),
            dialect=dialect,
            known_types=self._known,
            copies=self.hashes.count(),
            states=states,
            cells=self._cells,
            sample=self._sample,
        )


def merge_known_types(files: Sequence[Path]) -> dict[str, ColumnType]:
    """Returns the types that files give to columns; text in one of them is text in all."""
    merged: dict[str, ColumnType] = {}
    for name, kind in (item for file in files for item in known_types(file).items()):
        name = name.strip() or UNNAMED
        merged[name] = "string" if "string" in (kind, merged.get(name)) else "float"
    return merged


class _Hashed:
    """A file that is hashed while it is read from start to end, or else beforehand."""

    def __init__(self, raw: BinaryIO, whole: bool):
        self._sha256: str | None = None
        self.stream: Any = raw
        if whole:
            self._sha256 = hashlib.file_digest(raw, "sha256").hexdigest()  # type: ignore[arg-type]
            raw.seek(0)
        else:
            self._reader = HashedReader(raw)
            self.stream = io.BufferedReader(self._reader, _HEAD_BLOCK_BYTES)

    def finish(self) -> str:
        """Returns the SHA-256 of the whole file."""
        if self._sha256 is not None:
            return self._sha256
        while self._reader.read(_HEAD_BLOCK_BYTES):
            pass  # padding may follow a compressed text
        return self._reader.sha256


class _Text:
    """The text of a file, whose beginning can be looked at before it is read.

    `head`: Its first bytes: at least the lines by which the dialect is detected, or all of it.
    """

    def __init__(self, stream: Any):
        self._stream = stream
        self.head = b""
        num_lines = 0
        while (
            num_lines <= (MAX_LINES if len(self.head) < _MIN_HEAD_BYTES else MIN_LINES)
            and len(self.head) < _MAX_HEAD_BYTES
            and (block := stream.read(_HEAD_BLOCK_BYTES))
        ):
            num_lines += len(_LINE_END.findall(block))
            self.head += block

    def head_lines(self, errors: str) -> io.TextIOWrapper:
        """Returns a stream of the text of the head, with line ends as they are."""
        return io.TextIOWrapper(io.BytesIO(self.head), "utf-8-sig", errors, newline="")

    def first_line(self) -> str:
        """Returns the text up to the first line feed."""
        return self.head.partition(b"\n")[0].decode("utf-8-sig", "replace")

    def checked(self, quotes: QuoteSearch | None, hashes: RowHashes) -> "_CheckedText":
        """Returns the whole text, which is checked and hashed while it is read."""
        return _CheckedText(self.head, self._stream, quotes, hashes)


class _CheckedText:
    """Stream of a text that looks at all bytes that it hands on."""

    closed = False

    def __init__(self, head: bytes, stream: Any, quotes: QuoteSearch | None, hashes: RowHashes):
        self._head = io.BytesIO(head)
        self._stream, self._quotes, self._hashes = stream, quotes, hashes
        self._has_line_feed = self._has_stray_return = self._ends_in_return = False
        self.is_odd, self.is_csv = False, quotes is not None

    def read(self, size: int) -> bytes:
        """Returns the next bytes; none at the end."""
        block = self._head.read(size)
        block += self._stream.read(size - len(block))  # full, so that the batches are as ever
        self.is_odd |= b"\0" in block
        if self._ends_in_return and not block.startswith(b"\n"):
            self._has_stray_return = True
        self._ends_in_return = block.endswith(b"\r")
        self._has_line_feed |= b"\n" in block
        if b"\r" in block:
            inner = block[:-1] if self._ends_in_return else block
            self._has_stray_return |= byte_checks.STRAY_RETURN.search(inner) is not None
        self.is_odd |= self._has_line_feed and self._has_stray_return
        if self._quotes is not None:
            self._quotes.update(block)
        self._hashes.update(block)
        return block

    def ends_odd(self) -> bool:
        """Returns whether the text, all of which was read, has to be looked at more closely."""
        return self.is_odd or (self._has_line_feed and self._ends_in_return)
