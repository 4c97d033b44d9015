"""Sets aside the rows of CSV files that cannot be read, for `data.on_bad_row = "quarantine"`."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from components.example_gen.file_names import is_parquet, split_name
from pipelines.data import faults
from pipelines.data.cells import MAX_FIELD_CHARS, raw_rows
from pipelines.data.dialect import Dialect
from pipelines.data.encoding import Utf8Files
from pipelines.data.faults import why_odd
from pipelines.data.quotes import ends_inside_quotes, text_after_quotes
from pipelines.errors import BadInputError, counted, shown
from pipelines.terminal.ending import temporary_folder

MAX_SHARE = 0.1
"""Share of the lines of all files; if more are bad, the files are read in a wrong way."""

_MIN_LINES = 20  # below them, a share says nothing


@dataclass(frozen=True)
class BadRows:
    """Rows that were set aside."""

    counts: dict[str, int]  # Number of rows by reason, the most frequent reason first
    file: Path  # CSV with the columns file, line, reason and row; it lasts as long as the process
    first: str  # Place and reason of the first one

    @property
    def num_rows(self) -> int:
        return sum(self.counts.values())

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} with {reason}" for reason, count in self.counts.items())
        rows = counted(self.num_rows, "row")
        return f"left out: {rows} that cannot be read ({reasons}); the first: {self.first}"


def set_aside(
    texts: Utf8Files, dialect: Dialect, quote_is_given: bool = False
) -> tuple[Utf8Files, BadRows | None]:
    """Returns files without the rows that cannot be read, and these rows; None if there are none.

    Files that have some are copied, with empty lines instead, so that messages name the lines of the user's
    files. Cells that do not fit their column are not looked at.
    """
    folder = temporary_folder("pipelines-rows-")
    counts: Counter[str] = Counter()
    first, files, num_lines, num_bad_lines = "", [], 0, 0
    with (folder / "bad_rows.csv").open(
        "w", encoding="utf-8", errors="backslashreplace", newline=""
    ) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("file", "line", "reason", "row"))
        for index, (file, original) in enumerate(zip(texts.files, texts.originals, strict=True)):
            copy = folder / f"{index:05d}" / f"{split_name(file.name)[0]}.csv"
            num_bad = 0
            if not is_parquet(file):
                copy.parent.mkdir()
                with copy.open("w", encoding="utf-8", newline="") as kept:
                    for line, lines, fault in _rows(file, dialect, quote_is_given):
                        if line == 1:
                            line_end = "\r" if lines[0].endswith("\r") else "\n"
                        num_lines += len(lines)
                        if fault is None:
                            kept.writelines(lines)
                            continue
                        reason, what = fault
                        kept.write(line_end * len(lines))  # so the other rows stay on their lines
                        row = "".join(lines).rstrip("\r\n")
                        writer.writerow((str(original), line, what, row))
                        first = first or f"{original}, line {line}: {what}"
                        num_bad, num_bad_lines = num_bad + 1, num_bad_lines + len(lines)
                        counts[reason] += 1
            if not num_bad:
                copy.unlink(missing_ok=True)
            files.append(copy if num_bad else file)
    if not counts:
        return texts, None
    bad_rows = BadRows(dict(counts.most_common()), folder / "bad_rows.csv", first)
    if num_lines >= _MIN_LINES and num_bad_lines > MAX_SHARE * num_lines:
        raise BadInputError(
            f"{num_bad_lines} of {num_lines} lines are in rows that cannot be read, more than "
            f'{MAX_SHARE:.0%}, so data.on_bad_row = "quarantine" does not leave them out. The first: '
            f"{first}. Check data.delimiter, data.quote and data.encoding."
        )
    return replace(texts, files=files), bad_rows


def _rows(
    file: Path, dialect: Dialect, quote_is_given: bool
) -> Iterator[tuple[int, list[str], tuple[str, str] | None]]:
    """Yields the line on which each row starts, its lines, and the kind and the text of its fault."""
    header = faults.read_header(file, dialect)
    is_header, was_cut, ends_in_return = True, False, False
    for row in raw_rows(file, dialect, errors="surrogateescape"):
        lines, cells = row.lines, row.cells
        if row.line == 1:
            ends_in_return = lines[-1].endswith("\r")  # so do all lines of such a file
        is_cut = lines[-1].endswith("\r") and not ends_in_return
        fault = None
        if cells and not is_header:
            fault = _fault(cells, header)
            if fault is None and not quote_is_given:
                position = text_after_quotes(lines, dialect)
                if position is not None:
                    name = header[min(position, len(header) - 1)]
                    fault = ("text behind a quoted field", f"column {name!r} has text after its quotes")
        if is_cut or was_cut:
            fault = "a stray carriage return", "a carriage return outside of quotes cuts it"
        was_cut = is_cut
        if fault is not None and len(lines) > 1 and ends_inside_quotes(lines, dialect):
            name = header[min(len(cells), len(header)) - 1]
            raise BadInputError(
                f"{file}, line {row.line}, column {name!r}: a quoted field that starts with "
                f"{shown(cells[-1])!r} is never closed: {counted(len(lines), 'line')}, up to the end of the "
                "file, would be one cell. Close the quote, or remove it."
            )
        # Each line in between may be a row itself: then a quote that was left open joins them.
        sizes = [len(next(dialect.reader([line]), [])) for line in lines[1:-1]] if fault else []
        if 2 * sizes.count(len(header)) > len(lines):
            raise BadInputError(
                f"{file}, line {row.line}: a stray quote seems to turn {len(lines)} lines into one row; most "
                "of them look like separate rows. Remove the quote, or double it."
            )
        yield row.line, lines, fault
        is_header = is_header and not cells


def _fault(row: list[str], header: list[str]) -> tuple[str, str] | None:
    if len(row) != len(header):
        cells = counted(len(row), "cell")
        return "a wrong number of cells", f"{cells} where the header has {len(header)}"
    for name, cell in zip(header, row, strict=True):
        if len(cell) > MAX_FIELD_CHARS:
            return "a long cell", f"column {name!r} has {len(cell)} characters"
        if not cell.isascii() or "\0" in cell:
            if "\0" in cell:
                return "a NUL character", f"column {name!r} holds a NUL character"
            try:
                cell.encode()
            except UnicodeEncodeError as error:
                byte = ord(cell[error.start]) & 0xFF
                return "bytes that are not UTF-8", f"column {name!r} holds the byte 0x{byte:02x}"
    return why_odd(row, header)
