"""Checks on the bytes of a CSV file: whether it is CSV text, and CsvExampleGen can read it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.opening import open_bytes
from pipelines.errors import BadInputError, shown

_BLOCK_BYTES = 8 << 20
STRAY_RETURN = re.compile(rb"\r(?!\n)")
_SAVE_AS_UTF8 = "Save the file as UTF-8 (for example `iconv -f utf-16 -t utf-8`)."
_SAVE_AS_CSV = "Save its sheet as CSV (for example pandas.read_excel(FILE).to_csv(OUT, index=False))."
_ZIP = b"PK\x03\x04"
_ZIP_NAME_SIZE, _ZIP_NAME = slice(26, 28), 30
_EXCEL_NAMES = ("[Content_Types].xml", "_rels/", "docProps/", "xl/")
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"
_START_BYTES = 512  # enough for each mark, and for the first name in a ZIP archive

_FORMATS = (
    (b"\x1f\x8b", "is compressed with gzip. Unpack it (`gunzip FILE`), or let its name end in .csv.gz."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd. Unpack it, or let its name end in .csv.zst."),
    (b"BZh91", "is compressed with bzip2. Unpack it, or let its name end in .csv.bz2."),
    (b"PAR1\x15", "is a Parquet file. Let its name end in .parquet."),
    (b"\xfd7zXZ", "is compressed with xz. Unpack it (`unxz FILE`)."),
    (b"\xd0\xcf\x11\xe0", f"is an old Excel file (.xls). {_SAVE_AS_CSV}"),
    (b"%PDF", "is a PDF. Give the CSV file."),
    (b"\x89PNG", "is a picture. Give the CSV file."),
    (b"<!DOC", "is a web page, perhaps an error message instead of the data. Give the CSV file."),
    (b"<html", "is a web page, perhaps an error message instead of the data. Give the CSV file."),
    (b"version https://git-lfs", "is a pointer of Git LFS, not the data. Fetch them (`git lfs pull`)."),
    (b'{"', "is JSON. Give a CSV (for example pandas.read_json(FILE, lines=True).to_csv(OUT, index=False))."),
    (b"[{", "is JSON. Give a CSV (for example pandas.read_json(FILE).to_csv(OUT, index=False))."),
    (
        b"sep=",
        "starts with a `sep=` line, which only spreadsheets understand. Remove that line; data.delimiter "
        "sets the delimiter if it is not detected.",
    ),
    (b"\xff\xfe", f"is UTF-16 text. {_SAVE_AS_UTF8}"),
    (b"\xfe\xff", f"is UTF-16 text. {_SAVE_AS_UTF8}"),
)


@contextmanager
def readable(path: object, key: str = "data.path") -> Iterator[None]:
    """Turns an error of the file system into a `BadInputError`."""
    try:
        yield
    except BadInputError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # a symlink loop; a NUL in the path
        reason = getattr(error, "strerror", None) or error
        file = shown(str(getattr(error, "filename", None) or path))
        raise BadInputError(f"{file} cannot be read: {reason}. Check {key} and the permissions.") from error


def check_format(file: Path) -> None:
    """Checks that a file does not start like another format."""
    with open_bytes(file) as stream:
        start = stream.read(_START_BYTES)
    what = other_format(start)
    if what is not None:
        raise BadInputError(f"{file}, line 1: the file {what}")


def other_format(start: bytes) -> str | None:
    """Returns a description of the format that starts like this, with advice; None for CSV text."""
    if start.startswith(_ZIP):
        return _describe_zip(start)
    return next((what for mark, what in _FORMATS if start.startswith(mark)), None)


def _describe_zip(start: bytes) -> str:
    """Describes a ZIP archive by the name of its first file, with advice."""
    name = start[_ZIP_NAME:][: int.from_bytes(start[_ZIP_NAME_SIZE], "little")]
    if name.decode("utf-8", "replace").startswith(_EXCEL_NAMES):
        return f"is an Excel file. {_SAVE_AS_CSV}"
    if start[_ZIP_NAME:].startswith(_OPEN_DOCUMENT):
        return f"is an OpenDocument spreadsheet. {_SAVE_AS_CSV}"
    return "is a ZIP archive. Unpack it (`unzip FILE`), and give the CSV in it, or the folder of CSVs."


def check_bytes(file: Path, dialect: Dialect = COMMAS) -> None:
    """Checks that there is no NUL, and no stray carriage return.

    A file whose lines all end in a carriage return alone is accepted: it has no line feed.
    """
    has_line_feed = has_return = False
    with open_bytes(file) as stream:
        while block := stream.read(_BLOCK_BYTES):
            if block.endswith(b"\r"):
                block += stream.read(1)
            if b"\0" in block:
                _refuse_nul(file, dialect)
            has_line_feed = has_line_feed or b"\n" in block
            has_return = has_return or bool(STRAY_RETURN.search(block))
    if has_line_feed and has_return:
        _check_returns(file, dialect)


def _refuse_nul(file: Path, dialect: Dialect) -> None:
    with open_bytes(file) as stream:
        for number, line in enumerate(stream, start=1):
            if b"\0" in line:
                before = line[: line.index(b"\0")]
                is_wide = 3 * line.count(b"\0") > len(line) and bool(line.strip(b"\0\r\n"))
                advice = f"It seems to be UTF-16. {_SAVE_AS_UTF8}" if is_wide else "Remove it."
                between = dialect.delimiter.encode()
                where = before.count(between) + 1
                cell = line.split(between)[where - 1].strip()
                raise BadInputError(
                    f"{file}, line {number}, column {where}: {shown(cell.decode('utf-8', 'replace'))!r} "
                    f"holds a NUL character, which is not text. {advice}"
                )


def _check_returns(file: Path, dialect: Dialect) -> None:
    number, within_quotes = 1, False
    quote, between = dialect.quote.encode(), dialect.delimiter.encode()
    with open_bytes(file) as stream:
        for line in stream:
            position = 0
            for match in STRAY_RETURN.finditer(line):
                within_quotes ^= line.count(quote, position, match.start()) % 2 == 1
                position = match.start()
                if not within_quotes:
                    column = line.count(between, 0, position) + 1
                    text = shown(line.strip(b"\r\n").decode("utf-8", "replace"))
                    raise BadInputError(
                        f"{file}, line {number}, column {column}: {text!r} holds a carriage return outside "
                        "of quotes, but lines end in a line feed. Remove it; or if a line ends there, write "
                        "a line feed (`tr '\\r' '\\n'`)."
                    )
            within_quotes ^= line.count(quote, position) % 2 == 1
            number += 1
