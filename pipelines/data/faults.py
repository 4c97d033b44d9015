"""Locates faults in a CSV file and describes them."""

import codecs
import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.config.toml import toml_text
from pipelines.data.byte_checks import check_format
from pipelines.data.cells import MAX_FIELD_CHARS, list_rows, raw_rows
from pipelines.data.dialect import COMMAS, Dialect, delimiter_name
from pipelines.data.encoding import describe_likely_encodings
from pipelines.data.opening import open_bytes, open_text
from pipelines.errors import BadInputError, counted, shown

_MARK = "\ufeff"
_MARKS, _MARKS_IN_NAMES = ";\t|^~\x01", ": "  # delimiters, and those that names hold, too
_NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")


def is_plain_header(line: str, names: list[str], dialect: Dialect = COMMAS) -> bool:
    """Returns whether a line is just `names` joined by commas.

    Source: TFX's CsvExampleGen splits the first line at commas, regardless of quotes.
    """
    return dialect.is_plain and line.strip().split(",") == names


def read_header(file: Path, dialect: Dialect = COMMAS) -> list[str]:
    """Returns the column names of `file`, without white space around them."""
    if file.stat().st_size == 0:
        raise BadInputError(f"{file} is empty: a header line with the column names is expected.")
    check_format(file)
    with open_text(file, errors="surrogateescape") as stream:  # the rows are not looked at here
        return parse_header(file, stream, dialect)


def parse_header(file: Path, lines: Iterable[str], dialect: Dialect = COMMAS) -> list[str]:
    """Returns the column names in the lines of a file, without white space around them.

    `lines`: lines of the file, or its first ones; bytes that are not text are surrogates.
    """
    try:
        header: list[str] = next((row for row in dialect.reader(lines, strict=True) if row), [])
        "".join(header).encode()
    except UnicodeEncodeError as error:
        readable = [name.encode(errors="replace").decode() for name in header]
        raise BadInputError(describe_fault(file, readable, str(error), dialect)) from error
    except csv.Error as error:
        raise BadInputError(f"{file}, line 1: the header cannot be read: {error}.") from error
    header = [name.strip() for name in header]
    if not any(header):
        raise BadInputError(f"{file}, line 1: a header line with the column names is expected.")
    repeated = [name for name, count in Counter(name or "unnamed" for name in header).items() if count > 1]
    if repeated:
        positions = [
            str(index + 1) for index, name in enumerate(header) if (name or "unnamed") == repeated[0]
        ]
        raise BadInputError(
            f"{file}, line 1: the column name {repeated[0]!r} appears {len(positions)} times "
            f"(columns {', '.join(positions)}). {describe_missing_header(header) or 'Rename all but one.'}"
        )
    for position, name in enumerate(header, start=1):
        if "\0" in name:
            raise BadInputError(
                f"{file}, line 1: the name {shown(name)!r} of column {position} holds a NUL character. "
                "Rename the column; if the file is UTF-16, save it as UTF-8 "
                "(for example `iconv -f utf-16 -t utf-8`)."
            )
        if "\ufeff" in name:
            raise BadInputError(
                f"{file}, line 1: the name {shown(name)!r} of column {position} holds a byte order mark. "
                "Remove it; at most one belongs at the beginning of a file."
            )
        if "," in name or len(name.splitlines()) > 1:
            raise BadInputError(
                f"{file}, line 1: the name {shown(name)!r} of column {position} holds a comma or a line "
                "break, which CsvExampleGen cannot read in a name. Rename the column."
            )
    return header


def describe_header_difference(
    first: Path, first_header: list[str], other: Path, other_header: list[str]
) -> str:
    """Returns the message for two files whose headers differ."""
    lacks = [name for name in first_header if name not in other_header]
    adds = [name for name in other_header if name not in first_header]
    details = []
    if lacks:
        details.append(f"it lacks {', '.join(map(repr, lacks[:5]))}")
    if adds:
        details.append(f"it adds {', '.join(map(repr, adds[:5]))}")
    if not details:
        position = next(
            index
            for index, (mine, theirs) in enumerate(zip(first_header, other_header, strict=True))
            if mine != theirs
        )
        details.append(f"column {position + 1} is {other_header[position]!r}, not {first_header[position]!r}")
    return (
        f"{other}, line 1: the header differs from that of {first}: {' and '.join(details)}. "
        "All files of a run need the same columns in the same order."
    )


def describe_fault(file: Path, header: list[str], parser_message: str, dialect: Dialect = COMMAS) -> str:
    """Returns the message for a file that could not be parsed, with line and column."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(file) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                decoder.decode(line, final=True)
            except UnicodeDecodeError as error:
                field = line[: error.start].count(dialect.delimiter.encode())
                column = f", column {shown(header[field])!r}" if field < len(header) else ""
                advice = describe_likely_encodings(file) or (
                    " Save the file as UTF-8 (for example `iconv -f latin1 -t utf-8`)."
                )
                byte = line[error.start]
                return f"{file}, line {number}{column}: byte 0x{byte:02x} is not UTF-8 text.{advice}"
    for number, row in enumerate(row for row in raw_rows(file, dialect) if row.cells):
        for index, cell in enumerate(row.cells):
            if len(cell) > MAX_FIELD_CHARS:
                name = header[min(index, len(header) - 1)]
                return (
                    f"{file}, line {row.line}, column {name!r}: a field has {len(cell)} characters, and "
                    f"starts with {cell[:20]!r}; CsvExampleGen reads at most {MAX_FIELD_CHARS}. Shorten it, "
                    "remove the column, or close a quote that is open."
                )
        if len(row.cells) != len(header):
            return _describe_ragged_row(file, header, row.cells, row.line, number)
    return f"{file}: {parser_message}"


def describe_missing_header(header: Sequence[str]) -> str:
    """Returns advice on a file whose first line looks like a row of data; empty if it does not."""
    number = next((name for name in header if _NUMBER.fullmatch(name)), None)
    if number is None:
        return ""
    return (
        f"The first line looks like a row of data ({number!r} is a number). If the file has no header line, "
        "put one above it, with the names of the columns."
    )


def describe_separator(header: list[str], label: str | None = None) -> str:
    """Returns advice on a file whose fields are not separated by commas; empty if they seem to be.

    `label`: name of a column; a colon or a space in the header may be a delimiter only if it is next to it.
    """
    name = header[0]
    marks = [mark for mark in _MARKS if mark in name]
    marks += [mark for mark in _MARKS_IN_NAMES if label in name.split(mark)]
    if len(header) > 1 or not marks:
        return ""
    mark = max(marks, key=name.count)
    setting = shlex.quote(f"data.delimiter={toml_text(mark)}")
    return f"Its fields seem to be separated by {delimiter_name(mark)}: give --set {setting}."


def _describe_ragged_row(file: Path, header: list[str], row: list[str], line: int, row_number: int) -> str:
    if len(row) < len(header):
        what = f"there is no value for column {header[len(row)]!r}"
        advice = "Add the values that are missing, or remove the line."
    else:
        what = f"{row[len(header)]!r} follows the last column {header[-1]!r}"
        advice = "Put a field that contains a comma in double quotes."
    fields = counted(len(row), "field")
    return (
        f"{file}, line {line} (row {row_number} below the header): {fields} where the header "
        f"has {len(header)}; {what}. "
        f"{describe_separator(header) or advice}"
    )


def why_odd(row: Sequence[str], header: Sequence[str]) -> tuple[str, str] | None:
    """Returns the kind and the description of what is odd about a row; None for a row of data."""
    if row and row[0].startswith(_MARK):
        cell = shown(row[0])
        return ("a byte order mark", f"{cell!r} in column {header[0]!r} starts with a byte order mark")
    if len(header) > 1 and [cell.strip() for cell in row] == list(header):
        return "the header once more", f"the row is the header once more ({shown(','.join(row))})"
    return None


def has_odd_row(batch: Any, header: Sequence[str]) -> bool:
    """Returns whether a record batch of strings has a row that is not data."""
    import pyarrow.compute as pc

    if pc.any(pc.starts_with(batch.column(0), _MARK)).as_py():
        return True
    is_header = None
    for cells, name in zip(batch.columns, header, strict=True):
        is_name = pc.equal(pc.utf8_trim_whitespace(cells), name)
        is_header = is_name if is_header is None else pc.and_(is_header, is_name)
        if len(header) == 1 or not pc.any(is_header).as_py():
            return False
    return True


def refuse_odd_row(file: Path, header: Sequence[str], dialect: Dialect = COMMAS) -> None:
    """Refuses the first row of a file that is not data."""
    for line, row in list_rows(file, dialect):
        odd = why_odd(row, header)
        if odd is not None:
            raise BadInputError(
                f"{file}, line {line}: {odd[1]}, as in files that were joined. Remove it, or set "
                'data.on_bad_row = "quarantine" to leave the row out.'
            )
