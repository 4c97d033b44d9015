"""The dialect of a CSV file, delimiter and quote, detected by trying."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from components.example_gen.file_names import is_parquet
from pipelines.data.opening import open_text
from pipelines.errors import BadInputError, counted

DELIMITERS = (",", ";", "\t", "|")
"""Delimiters that are tried."""

MAX_LINES = 1_000
"""Number of lines that are examined."""

MIN_LINES = 50
"""Number of long lines that are examined, also beyond `MAX_CHARS`."""

MAX_CHARS = 1 << 20
"""Number of characters after which no further line is examined."""

MAX_LONG_CHARS = 16 << 20
"""Number of characters after which no further line is examined, however few lines there were."""

_MIN_FITTING_SHARE = 0.9
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", ":": "colons", " ": "spaces"}


def delimiter_name(delimiter: str) -> str:
    return _NAMES.get(delimiter, repr(delimiter))


@dataclass(frozen=True)
class Dialect:
    """Delimiter and quote of a CSV file."""

    delimiter: str = ","  # Character between two fields
    # Character around a field that holds a delimiter, a line break or a quote, which is doubled.
    quote: str = '"'

    @property
    def is_plain(self) -> bool:
        """True if CsvExampleGen reads it."""
        return self == Dialect()

    def reader(self, lines: Iterable[str], file: Path | None = None, **settings: Any) -> Any:
        """Returns a `csv.reader` over lines.

        `file`: path of the file; a field beyond the limit of the csv module is then a BadInputError that
        names the line.
        """
        reader = csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, **settings)
        return reader if file is None else _Rows(reader, file)

    def __str__(self) -> str:
        quotes = "double" if self.quote == '"' else "single"
        return f"fields are separated by {delimiter_name(self.delimiter)} and quoted by {quotes} quotes"


class _Rows:
    """A `csv.reader` that says where a field beyond the limit is."""

    def __init__(self, reader: Any, file: Path):
        self._reader, self._file = reader, file

    @property
    def line_num(self) -> int:
        return int(self._reader.line_num)

    def __iter__(self) -> "_Rows":
        return self

    def __next__(self) -> list[str]:
        line = self.line_num + 1
        try:
            row: list[str] = next(self._reader)
        except csv.Error as error:
            if "field limit" not in str(error):
                raise
            raise BadInputError(
                f"{self._file}, line {line}: a field has more than {csv.field_size_limit()} characters, in "
                f"at least {counted(self.line_num - line + 1, 'line')}. Close the quote if one is open, or "
                "shorten the field."
            ) from error
        return row


COMMAS = Dialect()


def detect_dialect(files: Sequence[Path], delimiter: str | None = None, quote: str | None = None) -> Dialect:
    """Returns the dialect in which the most rows have as many fields as the header.

    Commas and double quotes win a tie. Single quotes are chosen only if they explain more than no quotes
    at all, not because a double quote is left open. If nothing fits, the delimiter is the
    best one without regard to quotes, and a later check reports the quotes.
    """
    if is_parquet(files[0]):
        return COMMAS
    with open_text(files[0], errors="replace") as stream:
        return detect_from_lines(stream, delimiter, quote)


def detect_from_lines(lines: Iterable[str], delimiter: str | None, quote: str | None) -> Dialect:
    """Returns the dialect of the lines of a file, as `detect_dialect`."""
    sampled: list[str] = []
    num_chars = 0
    for line in islice(lines, MAX_LINES):
        if num_chars >= (MAX_CHARS if len(sampled) >= MIN_LINES else MAX_LONG_CHARS):
            break
        num_chars += len(line)
        sampled.append(line)
    sample = "".join(sampled)
    best, best_score = Dialect(delimiter or ",", quote or '"'), (0.0, 0)
    for mark in [quote] if quote else ['"', "'"]:
        for between in [delimiter] if delimiter else DELIMITERS:
            score = _score(sample, between, mark)
            if mark == "'" and quote is None and score <= _score(sample, between, None):
                continue
            if score[1] > 1 and score[0] >= _MIN_FITTING_SHARE and score > best_score:
                if between != "," and delimiter is None and best_score[0] >= score[0]:
                    continue  # it finds more fields, but commas fit as well
                best, best_score = Dialect(between, mark), score
    if best_score[1] or delimiter:
        return best
    scores = {between: _score(sample, between, None) for between in DELIMITERS}
    fitting = [mark for mark, (share, size) in scores.items() if size > 1 and share >= _MIN_FITTING_SHARE]
    return Dialect(max(fitting, key=scores.__getitem__, default=","), best.quote)


def _score(sample: str, delimiter: str, quote: str | None) -> tuple[float, int]:
    """Returns the share of the rows that have as many fields as the header, and their number."""
    rows = []
    text = io.StringIO(sample)
    reader = (
        csv.reader(text, delimiter=delimiter, quotechar=quote)
        if quote
        else csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    )
    try:
        for row in reader:
            if row:
                rows.append(len(row))
    except csv.Error:  # reported later, with its line
        return 0.0, 0
    if not rows:
        return 0.0, 0
    header, *below = rows
    fitting = sum(size == header for size in below) / len(below) if below else 1.0
    return fitting, header
