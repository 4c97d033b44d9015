"""Profiles files while they are read once, as long as nothing in them needs a closer look."""

import codecs
import contextlib
import hashlib
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from components.beam.ahead import map_ahead
from components.example_gen.file_names import is_parquet
from pipelines.data import byte_checks, faults
from pipelines.data.dialect import (
    COMMAS,
    MAX_CHARS,
    MAX_LINES,
    MAX_LONG_CHARS,
    MIN_LINES,
    Dialect,
    detect_in,
)
from pipelines.data.file_states import FileState, state_of_hashed
from pipelines.data.odd_rows import has_odd_row
from pipelines.data.profile import CsvProfile, TableScan, known_types_of
from pipelines.data.quotes import QuoteFindings, QuoteSearch, examine_quotes
from pipelines.data.reading import parse
from pipelines.errors import BadInputError

_HEAD_BLOCK_BYTES = 1 << 20
# Of long lines: at most four bytes for each character, and the rest of the last line.
_MIN_HEAD_BYTES = 8 * MAX_CHARS
_MAX_HEAD_BYTES = 4 * MAX_LONG_CHARS
_LINE_END = re.compile(rb"\r\n?|\n")
_STRAY_RETURN = re.compile(rb"\r(?!\n)")


class CloserLookError(Exception):
    """A file may hold a fault, or is in another encoding: the checks have to look at it one by one."""


def profile_once(
    files: Sequence[Path],
    delimiter: str | None = None,
    quote: str | None = None,
) -> CsvProfile | None:
    """Returns the profile of files, each of which is read once; None if one needs a closer look.

    What it returns is what `profile_csv` returns for these files in the dialect that `detect_dialect` finds.
    A file with line breaks in quotes, or with quotes within a field, is read once more for its quotes. A
    Parquet file is read once more for its hash.
    """
    import pyarrow

    from components.errors import SettingError

    closer = (CloserLookError, BadInputError, SettingError, OSError, pyarrow.ArrowException)
    try:
        return _profile(files, delimiter, quote)
    except closer:
        return None  # the careful checks find it again, and say where it is


def _profile(files: Sequence[Path], delimiter: str | None, quote: str | None) -> CsvProfile:
    from components.example_gen.csv_text import as_csv

    states: dict[Path, FileState] = {}
    quotes: list[QuoteFindings] = []
    scan: TableScan | None = None
    header: list[str] = []
    dialect = COMMAS
    has_mark, is_plain = False, True
    for file in files:
        with file.open("rb") as raw:
            before = os.fstat(raw.fileno())
            content = _Hashed(raw, whole=is_parquet(file))
            text = _Text(as_csv(str(file), content.stream))
            if scan is None and not is_parquet(file):
                dialect = detect_in(text.head_lines("replace"), delimiter, quote)
            found = faults.parse_header(file, text.head_lines("surrogateescape"), dialect)
            if scan is None:
                header = found
                scan = TableScan(header, known_types_of(files))
            if found != header or byte_checks.other_format(text.head) is not None:
                raise CloserLookError
            has_mark |= text.head.startswith(codecs.BOM_UTF8)
            is_plain &= faults.is_plain_header(text.first_line(), header, dialect)
            search = None if is_parquet(file) else QuoteSearch(dialect)
            _add_rows(scan, text.checked(search), header, dialect)
            states[file] = state_of_hashed(file, before, content.finish())
        scan.end_file(file)
        quotes.append(
            examine_quotes(file, header, dialect, quote is not None)
            if search is not None and search.finds_any()
            else QuoteFindings()
        )
    if scan is None:
        raise CloserLookError
    return scan.profile(states, dialect, quotes, has_mark, is_plain)


def _add_rows(scan: TableScan, text: "_CheckedText", header: list[str], dialect: Dialect) -> None:
    def examined(batch: Any) -> tuple[Any, bool]:
        return batch, text.is_csv and has_odd_row(batch, header)

    with contextlib.closing(map_ahead(examined, parse(text, len(header), dialect))) as batches:
        for batch, has_odd in batches:
            if text.is_odd or has_odd:
                raise CloserLookError
            scan.add(batch)
            if scan.has_long_cell:
                raise CloserLookError
    if text.ends_odd():
        raise CloserLookError


class _Hashed:
    """A file that is hashed while it is read from start to end, or else beforehand."""

    def __init__(self, raw: BinaryIO, whole: bool):
        from components.hashed_reader import HashedReader

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

    def checked(self, quotes: QuoteSearch | None) -> "_CheckedText":
        """Returns the whole text, which is checked while it is read."""
        return _CheckedText(self.head, self._stream, quotes)


class _CheckedText:
    """Stream of a text that looks at all bytes that it hands on."""

    closed = False

    def __init__(self, head: bytes, stream: Any, quotes: QuoteSearch | None):
        self._head = io.BytesIO(head)
        self._stream, self._quotes = stream, quotes
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
            self._has_stray_return |= _STRAY_RETURN.search(inner) is not None
        self.is_odd |= self._has_line_feed and self._has_stray_return
        if self._quotes is not None:
            self._quotes.update(block)
        return block

    def ends_odd(self) -> bool:
        """Returns whether the text, all of which was read, has to be looked at more closely."""
        return self.is_odd or (self._has_line_feed and self._ends_in_return)
