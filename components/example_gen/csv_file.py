"""Reads a CSV file as blocks of columns, with the rules of Python's csv module.

pyarrow splits a file into the same cells, and is much faster. Where it refuses a block, or might read it in
another way, the csv module reads on from that row, and says which line is wrong if one is.
"""

import contextlib
import csv
import io
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from components.errors import SettingError
from components.example_gen.block_size import block_bytes
from components.example_gen.cells import ColumnType
from components.example_gen.csv_text import as_csv, known_types
from components.example_gen.file_names import compression_codec, is_parquet
from components.example_gen.files import describe_change
from components.example_gen.line_ends import WholeLineEnds
from components.hashed_reader import HashedReader

_LOGGER = logging.getLogger(__name__)

PACKED_RATIO = 8
"""Bytes of CSV for a byte of a compressed file, by experience."""

MAX_CELL_CHARS = 131_072
"""Limit of the csv module; a longer cell mostly comes from a quote that is open."""

_BLOCK_BYTES = 4 << 20


class _UndecidedError(Exception):
    """pyarrow might read the next rows differently from the csv module."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with its expected content."""

    path: str  # Path of the file, which Beam can open; its suffix determines the format, see `as_csv`
    sha256: str  # SHA-256 of its content in hexadecimal digits
    names: tuple[str, ...]

    def blocks(self, columns: Sequence[int] | None = None) -> Iterator[Any]:
        """Yields the rows below the header as record batches of strings, in their order."""
        num_rows = 0
        try:
            for block in self._parsed(columns):
                yield block
                num_rows += len(block)
            return
        except (pa.ArrowInvalid, _UndecidedError) as error:
            _LOGGER.info("%s: using Python's csv module after row %d: %s", self.path, num_rows, error)
        yield from self._read_by_row(columns, num_rows)

    def known_types(self) -> dict[str, ColumnType]:
        """Returns the column types that the file itself declares; none for a CSV."""
        if not is_parquet(self.path):
            return {}
        with _stream(self.path) as stream:
            return known_types(self.path, stream)

    def _parsed(self, columns: Sequence[int] | None) -> Iterator[Any]:
        """Yields the blocks that pyarrow reads; raises _UndecidedError, or pyarrow's own error, elsewhere."""
        header = _first_line(self.path)
        if _names(header) != self.names:
            raise SettingError(describe_change(self.path))
        if '"' in header or not header.strip("\r\n") or len(header) > MAX_CELL_CHARS:
            raise _UndecidedError("the header may differ from the first line")
        positions = [str(position) for position in range(len(self.names))]
        with _opened(self.path) as (content, text):
            blocks = pyarrow.csv.open_csv(
                WholeLineEnds(text, len(positions)),
                pyarrow.csv.ReadOptions(
                    column_names=positions, skip_rows=1, block_size=block_bytes(_BLOCK_BYTES, len(positions))
                ),
                pyarrow.csv.ParseOptions(newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(positions, pa.string()),
                    strings_can_be_null=False,
                    include_columns=None
                    if columns is None
                    else [positions[position] for position in columns],
                ),
            )
            for block in blocks:
                longest = (pc.max(pc.binary_length(cells)).as_py() or 0 for cells in block.columns)
                if max(longest, default=0) > MAX_CELL_CHARS:
                    raise _UndecidedError("a cell may be too long")
                yield block
            self._check(content)

    def _read_by_row(self, columns: Sequence[int] | None, num_read: int) -> Iterator[Any]:
        """Yields the remaining rows, parsed with the csv module."""
        with _opened(self.path) as (content, text):
            rows: list[list[str]] = []
            num_chars = 0
            all_rows = self._rows(_as_text(text))
            for row in itertools.islice(all_rows, num_read, None):
                rows.append(row)
                num_chars += sum(map(len, row)) + len(row)
                if num_chars >= _BLOCK_BYTES:
                    yield _as_block(rows, columns)
                    rows, num_chars = [], 0
            if rows:
                yield _as_block(rows, columns)
            self._check(content)

    def _rows(self, text: Iterable[str]) -> Iterator[list[str]]:
        reader = csv.reader(text)
        line = 1
        try:
            for row in reader:
                if row and line > 1:
                    self._check_row(row, line)
                    yield row
                line = reader.line_num + 1
        except csv.Error as error:
            raise SettingError(f"{self.path}, line {line}: {error}.") from error

    def _check_row(self, row: list[str], line: int) -> None:
        where = f"{self.path}, line {line}"
        if len(row) != len(self.names):
            what = (
                f"there is no value for column {self.names[len(row)]!r}"
                if len(row) < len(self.names)
                else f"{row[len(self.names)]!r} follows the last column {self.names[-1]!r}"
            )
            raise SettingError(
                f"{where}: {len(row)} {'cell' if len(row) == 1 else 'cells'} where the header has "
                f"{len(self.names)}; {what}. Put a cell that contains a comma in double quotes."
            )
        for name, cell in zip(self.names, row, strict=True):
            try:
                cell.encode()
            except UnicodeEncodeError as error:
                raise SettingError(_describe_byte(f"{where}, column {name!r}", error)) from error

    def _check(self, content: HashedReader) -> None:
        while content.read(_BLOCK_BYTES):
            pass  # padding may follow a compressed text
        if content.sha256 != self.sha256:
            raise SettingError(describe_change(self.path))


def csv_bytes(path: str, num_bytes: int) -> int:
    """Returns the number of bytes of CSV in a file, which is an estimate for a compressed file."""
    is_packed = is_parquet(path) or compression_codec(path) is not None
    return num_bytes * PACKED_RATIO if is_packed else num_bytes


def read_names(path: str) -> tuple[str, ...]:
    """Returns the names of a file's columns.

    Source: TFX's CsvExampleGen divides the first line at commas, regardless of quotes.
    """
    header = _first_line(path)
    if not header:
        raise SettingError(f"{path} is empty: a line with the names of the columns is expected.")
    try:
        header.encode()
    except UnicodeEncodeError as error:
        raise SettingError(_describe_byte(f"{path}, line 1", error)) from error
    return _names(header)


def _first_line(path: str) -> str:
    with _opened(path) as (_, text):
        return _as_text(text).readline()


@contextlib.contextmanager
def _opened(path: str) -> Iterator[tuple[HashedReader, io.BufferedReader]]:
    """Opens a file; yields its raw bytes, and its text, which reads from them."""
    with contextlib.ExitStack() as streams:
        content = HashedReader(streams.enter_context(_stream(path)))
        if is_parquet(path):  # not read sequentially, so it is hashed separately
            yield content, as_csv(path, streams.enter_context(_stream(path)))
        else:
            yield content, as_csv(path, io.BufferedReader(content))


def _stream(path: str) -> Any:
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _as_text(stream: Any) -> io.TextIOWrapper:
    """Returns text in which bytes that are not UTF-8 become characters that cannot be encoded."""
    return io.TextIOWrapper(stream, "utf-8", errors="surrogateescape", newline="")


def _names(header: str) -> tuple[str, ...]:
    return tuple(header.strip().split(","))


def _describe_byte(where: str, error: UnicodeEncodeError) -> str:
    byte = ord(error.object[error.start]) & 0xFF
    return f"{where}: byte 0x{byte:02x} is not UTF-8 text. Save the file as UTF-8."


def _as_block(rows: list[list[str]], columns: Sequence[int] | None) -> Any:
    cells = list(zip(*rows, strict=True))
    places = range(len(cells)) if columns is None else columns
    arrays = [pa.array(cells[position], pa.string()) for position in places]
    return pa.RecordBatch.from_arrays(arrays, [str(position) for position in places])
