"""One streaming pass over the CSV files: column types, counts, and a fingerprint."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from components.example_gen.file_names import is_parquet
from components.example_gen.line_ends import WholeLineEnds
from pipelines.data import byte_checks, faults
from pipelines.data.cells import MAX_FIELD_CHARS, Cell, find_cell
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.file_states import FileState, check_unchanged, read_states
from pipelines.data.opening import known_types, open_bytes
from pipelines.data.quotes import check_quotes
from pipelines.errors import BadInputError

MISSING_TOKENS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "-")
"""Cells that mean "no value" (besides white space)."""

MAX_DISTINCT = 20_000
"""Distinct values are counted up to this number; a column with more has `distinct_values` None."""

UNNAMED = "unnamed"
"""Name of a column whose header is empty, as pandas writes it for an index."""

_BLOCK_BYTES = 8 << 20
_MAX_QUOTE_NOTES = 3
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|(?i:^[-+]?(inf|infinity|nan)$)"
_MAX_NON_NUMBERS = 1_000  # a column with more is text
_MAX_NON_NUMBER_SHARE = 0.01
_MIN_NUMBERS = 20
_FLOAT32_LIMIT = 3.4028235677973366e38  # from here on, float32 rounds to infinity
_TRUE_FALSE = frozenset(("true", "false"))

ColumnType = Literal["integer", "float", "boolean", "string", "empty"]


@dataclass
class ColumnProfile:
    """Profile of one column.

    Attributes:
      name: Name in the header, without white space around it.
      type: Narrowest type that holds all cells with a value.
      num_values: Number of cells with a value.
      num_missing: Number of cells without one.
      distinct_values: Number of occurrences of each value as text, or None beyond `MAX_DISTINCT`.
      minimum: Smallest number that float32 can hold; None for a column without numbers.
      maximum: Largest such number.
      mean: Mean of these numbers.
      variance: Population variance of these numbers.
      holds_missing_tokens: True if a cell says `NA` or the like instead of being empty.
      num_beyond_float32: Count of numbers that are infinite, or too large for TFX, which uses float32.
      num_non_numbers: Count of cells in a text column that are not numbers; None when there are many.
    """

    name: str
    type: ColumnType = "empty"
    num_values: int = 0
    num_missing: int = 0
    distinct_values: Counter[str] | None = field(default_factory=Counter)
    minimum: float | None = None
    maximum: float | None = None
    mean: float = 0.0
    variance: float = 0.0
    holds_missing_tokens: bool = False
    num_beyond_float32: int = 0
    num_non_numbers: int | None = None

    @property
    def num_distinct(self) -> int | None:
        """Number of distinct values, or None when there are too many to count."""
        return None if self.distinct_values is None else len(self.distinct_values)

    @property
    def is_numeric(self) -> bool:
        """True if all values are numbers."""
        return self.type in ("integer", "float")

    @property
    def is_text_by_few_cells(self) -> bool:
        """True if the column would be numeric but for a few cells, which may be mistakes."""
        if self.type != "string" or not self.num_non_numbers:
            return False
        num_numbers = self.num_values - self.num_non_numbers
        return num_numbers >= _MIN_NUMBERS and self.num_non_numbers <= max(
            1, _MAX_NON_NUMBER_SHARE * self.num_values
        )


@dataclass
class CsvProfile:
    """Profile of the files of a run.

    Attributes:
      files: Absolute paths.
      columns: Profiles by column name, in the order of the header.
      num_rows: Number of rows below the headers.
      fingerprint: SHA-256 over the names and contents of the files.
      has_byte_order_mark: True if a file starts with the UTF-8 byte order mark.
      has_unnamed_column: True if a header leaves a name empty; the column is called `unnamed` here.
      has_plain_header: True if every first line is the names joined by commas, without quotes.
      has_irregular_quotes: True if there are quotes within fields that do not start with one.
      quote_doubts: Quoted fields that may have swallowed rows, one sentence each.
      dialect: Delimiter and quote of the files.
      known_types: Types that Parquet files give to columns: `string` or `float`.
      originals: User's files by their UTF-8 copies, if they are in another encoding.
      num_set_aside: Number of rows that could not be read, and are not in `files`.
      states: States of the files, and of `originals`, before they were examined.
    """

    files: list[Path]
    columns: dict[str, ColumnProfile]
    num_rows: int
    fingerprint: str
    has_byte_order_mark: bool
    has_unnamed_column: bool = False
    has_plain_header: bool = True
    has_irregular_quotes: bool = False
    quote_doubts: tuple[str, ...] = ()
    dialect: Dialect = COMMAS
    known_types: dict[str, ColumnType] = field(default_factory=dict)
    originals: dict[Path, Path] = field(default_factory=dict)
    num_set_aside: int = 0
    states: dict[Path, FileState] = field(default_factory=dict)

    @property
    def digests(self) -> list[str]:
        """SHA-256 of the content of each file."""
        return [self.states[file].sha256 for file in self.files]

    @property
    def user_files(self) -> list[Path]:
        """The user's own files, even if UTF-8 copies are read."""
        return [self.originals.get(file, file) for file in self.files]

    def check_unchanged(self) -> None:
        """Checks that the user's files have not changed since they were examined.

        Raises:
          BadInputError: A file has changed, or is gone.
        """
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
        return self.find_cell(column, lambda text: is_number(text) and not _fits_float32(text))

    def notes(self) -> list[str]:
        """Returns one sentence for each interpretation that may surprise the author of the files."""
        notes = list(self.quote_doubts[:_MAX_QUOTE_NOTES])
        if more := len(self.quote_doubts) - len(notes):
            notes.append(f"{more} more quoted fields may have swallowed rows")
        for column in self.columns.values():
            if column.is_text_by_few_cells:
                notes.append(
                    f"column {column.name!r} is read as text: {column.num_non_numbers} of "
                    f"{column.num_values} values are no numbers, the first: "
                    f"{self.find_non_number(column.name)}. Mend it, or leave the cell empty"
                )
            if column.is_numeric and column.num_beyond_float32:
                notes.append(
                    f"column {column.name!r}: {column.num_beyond_float32} numbers that float32 "
                    "cannot hold count as missing, the first: "
                    f"{self.find_beyond_float32(column.name)}"
                )
        return notes


def is_missing(text: str) -> bool:
    """Returns whether a cell, without white space around it, means "no value"."""
    return text in MISSING_TOKENS


def is_number(text: str) -> bool:
    """Returns whether TFX reads a text as a number, which `1_0` is not."""
    return re.match(_NUMBER, text, re.ASCII) is not None


def _fits_float32(text: str) -> bool:
    return abs(float(text)) < _FLOAT32_LIMIT


def profile_csv(
    files: list[Path],
    dialect: Dialect = COMMAS,
    states: Mapping[Path, FileState] | None = None,
    quote_is_given: bool = False,
) -> CsvProfile:
    """Returns the profile of `files`, which share one header.

    Args:
      files: Files of UTF-8 text.
      dialect: Delimiter and quote of the files.
      states: States of the files. Default: they are read.
      quote_is_given: True if the quote is configured, see `check_quotes`.

    Raises:
      BadInputError: An empty file, a header without rows, a row with too few or too many
        fields, a file that cannot be read or is not UTF-8 text, content that CsvExampleGen cannot read (a
        stray carriage return, an open quote, a stray one, a field of more than 131,072 characters), headers
        that differ, or a column name that appears twice; the message names file, line and column.
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
    known = _known_types(files)
    columns = {
        name or UNNAMED: _ColumnScan(name or UNNAMED, known.get(name or UNNAMED))
        for name in headers[first]
    }
    quotes = []
    for file in files:
        byte_checks.check_bytes(file, dialect)
        quotes.append(check_quotes(file, headers[first], dialect, quote_is_given))
        rows_before = next(iter(columns.values())).num_rows
        for batch in read_batches(file, headers[first], dialect):
            for scan, cells in zip(columns.values(), batch.columns, strict=True):
                scan.update(cells)
                if scan.longest > MAX_FIELD_CHARS:
                    raise BadInputError(
                        faults.describe_fault(file, headers[first], "a long field", dialect)
                    )
        if next(iter(columns.values())).num_rows == rows_before and not is_parquet(file):
            raise BadInputError(f"{file}: there is a header (line 1) but no row below it.")
    if not next(iter(columns.values())).num_rows:
        raise BadInputError(f"{first}: there is no row.")
    return CsvProfile(
        files=files,
        columns={name: scan.profile() for name, scan in columns.items()},
        num_rows=next(iter(columns.values())).num_rows,
        fingerprint=_fingerprint(files, states),
        has_byte_order_mark=any(faults.has_byte_order_mark(file) for file in files),
        has_unnamed_column="" in headers[first],
        has_plain_header=all(
            faults.has_plain_header(file, headers[file], dialect) for file in files
        ),
        has_irregular_quotes=any(found.is_irregular for found in quotes),
        quote_doubts=tuple(doubt for found in quotes for doubt in found.doubts),
        dialect=dialect,
        known_types=known,
        states=states,
    )


def _known_types(files: Sequence[Path]) -> dict[str, ColumnType]:
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


def read_batches(
    file: Path, header: list[str], dialect: Dialect = COMMAS, positions: Sequence[int] | None = None
) -> Iterator[Any]:
    """Yields pyarrow record batches of the rows below the header, with string columns.

    Args:
      file: File of UTF-8 text.
      header: Column names of the file.
      dialect: Delimiter and quote of the file.
      positions: Positions of the columns, from 0, in the order of the result; None means all.

    Raises:
      BadInputError: The file is not valid CSV; the message names line and column.
    """
    import pyarrow
    from pyarrow import csv

    names = [str(index) for index in range(len(header))]
    try:
        with open_bytes(file) as stream:
            reader = csv.open_csv(
                WholeLineEnds(stream),
                read_options=csv.ReadOptions(
                    block_size=_BLOCK_BYTES, column_names=names, skip_rows=0, use_threads=False
                ),
                parse_options=csv.ParseOptions(
                    delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pyarrow.string()),
                    strings_can_be_null=False,
                    include_columns=None
                    if positions is None
                    else [names[item] for item in positions],
                ),
            )
            is_header = True
            for batch in reader:
                yield batch.slice(1) if is_header else batch
                is_header = False
    except (pyarrow.ArrowInvalid, pyarrow.ArrowKeyError) as error:
        raise BadInputError(faults.describe_fault(file, header, str(error), dialect)) from error


class _ColumnScan:
    """Accumulates the profile of one column, batch by batch."""

    def __init__(self, name: str, known_type: ColumnType | None):
        self._profile = ColumnProfile(name)
        is_text = known_type == "string"
        self._could_be = {"integer": known_type is None, "float": not is_text}
        self._sum = self._squares = 0.0
        self._num_finite = 0
        self._shift: float | None = None
        self._num_non_numbers = 0
        self.longest = 0  # characters of a cell

    @property
    def num_rows(self) -> int:
        return self._profile.num_values + self._profile.num_missing

    def update(self, cells: Any) -> None:
        """Adds the cells (pyarrow string array) of one batch."""
        import pyarrow
        import pyarrow.compute as pc

        profile = self._profile
        self.longest = max(self.longest, pc.max(pc.utf8_length(cells)).as_py() or 0)
        trimmed = pc.utf8_trim_whitespace(cells)
        missing = pc.is_in(trimmed, value_set=pyarrow.array(MISSING_TOKENS))
        values = trimmed.filter(pc.invert(missing))
        num_missing = len(cells) - len(values)
        profile.num_missing += num_missing
        profile.num_values += len(values)
        if num_missing and not profile.holds_missing_tokens:
            num_empty = pc.sum(pc.equal(pc.binary_length(cells), 0)).as_py() or 0
            profile.holds_missing_tokens = num_empty < num_missing
        if not len(values):
            return
        if profile.distinct_values is not None:
            for item in pc.value_counts(values).to_pylist():
                profile.distinct_values[item["values"]] += item["counts"]
            if len(profile.distinct_values) > MAX_DISTINCT:
                profile.distinct_values = None
        if self._could_be["integer"]:
            self._could_be["integer"] = _cast(values, pyarrow.int64()) is not None
        if self._num_non_numbers <= _MAX_NON_NUMBERS:
            is_number = pc.match_substring_regex(values, _NUMBER)
            self._num_non_numbers += len(values) - (pc.sum(is_number).as_py() or 0)
        if self._could_be["float"]:
            numbers = _cast(values, pyarrow.float64())
            if numbers is None:
                self._could_be["float"] = False
            else:
                self._add_numbers(numbers)

    def _add_numbers(self, numbers: Any) -> None:
        import numpy as np

        numbers = numbers.to_numpy(zero_copy_only=False)
        finite = numbers[np.abs(numbers) < _FLOAT32_LIMIT]  # NaN is not
        self._profile.num_beyond_float32 += numbers.size - finite.size
        if not finite.size:
            return
        profile = self._profile
        low, high = float(finite.min()), float(finite.max())
        profile.minimum = low if profile.minimum is None else min(profile.minimum, low)
        profile.maximum = high if profile.maximum is None else max(profile.maximum, high)
        if self._shift is None:
            self._shift = float(finite.mean())  # keeps the sum of squares well-conditioned
        self._num_finite += finite.size
        self._sum += float((finite - self._shift).sum())
        self._squares += float(((finite - self._shift) ** 2).sum())

    def profile(self) -> ColumnProfile:
        """Returns the finished profile."""
        profile = self._profile
        if not profile.num_values:
            profile.type = "empty"
        elif self._could_be["integer"] and self._could_be["float"]:  # 0x1A is the former only
            profile.type = "integer"
        elif self._could_be["float"]:
            profile.type = "float"
        elif profile.distinct_values is not None and _TRUE_FALSE.issuperset(
            value.lower() for value in profile.distinct_values
        ):
            profile.type = "boolean"
        else:
            profile.type = "string"
        if profile.is_numeric and self._num_finite:
            offset = self._sum / self._num_finite
            profile.mean = (self._shift or 0.0) + offset
            profile.variance = max(0.0, self._squares / self._num_finite - offset**2)
        else:
            profile.minimum = profile.maximum = None
        if profile.type == "string" and self._num_non_numbers <= _MAX_NON_NUMBERS:
            profile.num_non_numbers = self._num_non_numbers
        return profile


def _cast(values: Any, target: Any) -> Any:
    import pyarrow

    try:
        return values.cast(target)
    except pyarrow.ArrowInvalid:
        return None
