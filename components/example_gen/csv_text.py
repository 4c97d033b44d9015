"""The text of a file of rows: a CSV, also a compressed one, or a Parquet file, which is read as its CSV.

The same rules apply to all cells. A Parquet file also declares the type of each column.
"""

import functools
import io
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from components.errors import SettingError
from components.example_gen.cells import ColumnType
from components.example_gen.file_names import compression_codec, is_parquet

MAX_LINE_BYTES = 64 << 20
"""Longest line of a CSV; ten thousand columns with six thousand characters each."""

_ROWS_AT_A_TIME = 16_384
_CHUNK_BYTES = 1 << 20


def as_csv(path: str, stream: IO[bytes]) -> io.BufferedReader:
    """Returns the CSV that a file holds; the stream of a Parquet file must be seekable."""
    if is_parquet(path):
        return io.BufferedReader(_Chunks(_parquet_lines(path, stream)))
    codec = compression_codec(path)
    chunks = (
        iter(functools.partial(stream.read, _CHUNK_BYTES), b"")
        if codec is None
        else _unpacked(path, stream, codec)
    )
    return io.BufferedReader(_Chunks(_with_line_ends(path, chunks)), _CHUNK_BYTES)


def known_types(path: str, stream: IO[bytes]) -> dict[str, ColumnType]:
    schema = _parquet(path, stream).schema_arrow
    return {field.name: _column_type(path, field.name, field.type) for field in schema}


class _Chunks(io.RawIOBase):
    """A stream of the bytes of an iterator."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        super().__init__()
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _with_line_ends(path: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields chunks; fails at a line that is too long to be held in memory by readers of lines."""
    num_lines = num_bytes = 0
    for chunk in chunks:
        last_end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        num_bytes = len(chunk) - last_end - 1 + (num_bytes if last_end < 0 else 0)
        num_lines += chunk.count(b"\n") or chunk.count(b"\r")
        if num_bytes > MAX_LINE_BYTES:
            raise SettingError(
                f"{path}, line {num_lines + 1}: the line is longer than the limit of {MAX_LINE_BYTES} bytes. "
                "Check that the file is a CSV, with a line for each row."
            )
        yield chunk


def _unpacked(path: str, stream: Any, codec: str) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(stream, codec) as unpacked:
            while chunk := unpacked.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise SettingError(
            f"{path} cannot be unpacked with {codec}: {error}. It is damaged or incomplete, or has the wrong "
            "suffix: download it again, or rename it."
        ) from error


def _parquet_lines(path: str, stream: IO[bytes]) -> Iterator[bytes]:
    import pyarrow.csv

    file = _parquet(path, stream)
    names = file.schema_arrow.names
    for name in names:
        if any(mark in name for mark in ',"\r\n'):
            raise SettingError(
                f"{path}: the name of the column {name!r} holds a comma, a quote or a line break. Rename the "
                "column."
            )
    types = {field.name: _column_type(path, field.name, field.type) for field in file.schema_arrow}
    yield ",".join(names).encode() + b"\n"
    settings = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    try:
        for batch in file.iter_batches(_ROWS_AT_A_TIME):
            columns = [
                _cells(path, name, column, types[name])
                for name, column in zip(names, batch.columns, strict=True)
            ]
            if len(names) == 1:  # in quotes: a line without any character would be no row
                columns = [columns[0].cast(pa.string()).fill_null("")]
            lines = pa.BufferOutputStream()
            pyarrow.csv.write_csv(pa.RecordBatch.from_arrays(columns, names), lines, settings)
            yield lines.getvalue().to_pybytes()
    except OSError as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> SettingError:
    return SettingError(
        f"{path} cannot be read as Parquet: {str(error).rstrip('.')}. It is damaged or incomplete, or has "
        "the wrong suffix: download it again, or rename it."
    )


def _parquet(path: str, stream: IO[bytes]) -> Any:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(stream)
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(path, error) from error


def _column_type(path: str, name: str, arrow_type: Any) -> ColumnType:
    kinds = pa.types
    if kinds.is_dictionary(arrow_type):
        return _column_type(path, name, arrow_type.value_type)
    if kinds.is_null(arrow_type):
        return ColumnType.EMPTY
    if kinds.is_integer(arrow_type):
        return ColumnType.INTEGER
    if kinds.is_floating(arrow_type):
        return ColumnType.FLOAT
    if kinds.is_decimal(arrow_type):
        is_whole = arrow_type.scale == 0 and arrow_type.precision <= 18
        return ColumnType.INTEGER if is_whole else ColumnType.FLOAT
    is_text = kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type)
    is_bytes = kinds.is_binary(arrow_type) or kinds.is_large_binary(arrow_type)
    is_time = kinds.is_date(arrow_type) or kinds.is_time(arrow_type)
    is_time = is_time or kinds.is_timestamp(arrow_type)
    if is_text or is_bytes or is_time or kinds.is_boolean(arrow_type):
        return ColumnType.TEXT
    raise SettingError(
        f"{path}: column {name!r} holds {arrow_type}, which is not supported. Write numbers, text, dates or "
        "times, or leave the column out."
    )


def _cells(path: str, name: str, column: Any, column_type: ColumnType) -> Any:
    """Returns the values of a column in types that pyarrow's CSV writer supports."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        if column_type is ColumnType.INTEGER:
            return column.cast(pa.int64())
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())
        return column if pa.types.is_floating(column.type) else column.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise SettingError(
            f"{path}: column {name!r} of {column.type} has a value that is neither an int64 number nor UTF-8 "
            f"text: {error}."
        ) from error
