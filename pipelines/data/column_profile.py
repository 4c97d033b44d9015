"""The profile of one column: its types, counts and moments, from one pass over its cells."""

import re
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pipelines.data.missing import find_missing
from pipelines.errors import BadInputError


class CellStore:
    """Keeps cells by column, in a temporary file that lasts as long as the store."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._writer: Any = None
        self._reader: Any = None
        self._places: dict[str, list[int]] = defaultdict(list)
        self._num_batches = 0
        self._lock = threading.Lock()  # of `add`

    def __contains__(self, column: str) -> bool:
        return column in self._places

    def add(self, column: str, values: Any, counts: Any) -> None:
        batch = pa.record_batch({"values": values, "counts": pa.array(counts, pa.int64())})
        with self._lock:
            try:
                self._write(batch)
            except OSError as error:
                raise BadInputError(
                    f"The cells of column {column!r} cannot be stored in {tempfile.gettempdir()} while the "
                    f"files are read: {error}. Free some space there, or set TMPDIR to a folder that has it."
                ) from error
            self._places[column].append(self._num_batches)
            self._num_batches += 1

    def _write(self, batch: Any) -> None:
        if self._writer is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pipelines-cells-")
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            path = str(Path(self._folder.name, "cells.arrow"))
            self._writer = pa.ipc.new_file(path, batch.schema, options=options)
        self._writer.write_batch(batch)

    def chunks(self, column: str) -> Iterator[tuple[Any, Any]]:
        """Yields the cells of a column, as they were added; none can be added from then on."""
        if self._reader is None and self._folder is not None:
            self._writer.close()
            self._reader = pa.ipc.open_file(str(Path(self._folder.name, "cells.arrow")))
        for place in self._places[column]:
            batch = self._reader.get_batch(place)
            yield batch["values"], batch["counts"].to_numpy()


_MAX_PARTS = 64  # with few values each: the parts would take more memory than the values


class ValueCounts(Mapping[str, int]):
    """Number of occurrences by value, in the order in which the values first occur.

    `texts`: The values (pyarrow string array), each once.
    `occurrences`: Number of occurrences of each of them (int64 array).
    """

    def __init__(self, texts: Any, occurrences: Any):
        self.texts, self.occurrences = texts, occurrences

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts.to_pylist())

    def __getitem__(self, text: str) -> int:
        return self._by_text[text]

    def __repr__(self) -> str:
        return repr(self._by_text)

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return dict(zip(self.texts.to_pylist(), self.occurrences.tolist(), strict=True))


class ValueCounter:
    """Counts values batch by batch."""

    def __init__(self) -> None:
        self._parts: list[ValueCounts] = []
        self._num_texts = 0  # of all parts

    def add(self, part: ValueCounts) -> None:
        self._parts.append(part)
        self._num_texts += len(part)
        if len(self._parts) > _MAX_PARTS:
            self.merge()

    def is_beyond(self, max_distinct: int) -> bool:
        """Returns whether there are more different values than that."""
        return self._num_texts > max_distinct and len(self.merge()) > max_distinct

    def merge(self) -> ValueCounts:
        """Returns the counts of all batches so far."""
        if not self._parts:
            return ValueCounts(pa.array([], pa.string()), np.array([], np.int64))
        if len(self._parts) > 1:
            texts = pa.concat_arrays([part.texts for part in self._parts]).dictionary_encode()
            occurrences: Any = np.zeros(len(texts.dictionary), np.int64)
            added = np.concatenate([part.occurrences for part in self._parts])
            np.add.at(occurrences, texts.indices.to_numpy(), added)
            self._parts = [ValueCounts(texts.dictionary, occurrences)]
            self._num_texts = len(self._parts[0])
        return self._parts[0]


MAX_DISTINCT = 20_000
"""Distinct values are counted up to this number; a column with more has `distinct_values` None."""

_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|(?i:^[-+]?(inf|infinity|nan)$)"
_LONG_INTEGER = r"^[-+]?[0-9]{19,}$"
_MAX_NON_NUMBERS = 1_000  # a column with more is text
_MAX_NON_NUMBER_SHARE = 0.01
_MIN_NUMBERS = 20
_FLOAT32_LIMIT = 3.4028235677973366e38  # from here on, float32 rounds to infinity
_TRUE_FALSE = frozenset(("true", "false"))

ColumnType = Literal["integer", "float", "boolean", "string", "empty"]

_STORED_AS: dict[str, ColumnType] = {
    "EMPTY": "empty",
    "INTEGER": "integer",
    "FLOAT": "float",
    "TEXT": "string",
}


@dataclass
class ColumnProfile:
    name: str  # Name in the header, without white space around it
    type: ColumnType = "empty"  # Narrowest type that holds all cells with a value
    num_values: int = 0
    num_missing: int = 0  # Number of cells without one
    # Number of occurrences of each value as text, or None beyond `MAX_DISTINCT`.
    distinct_values: ValueCounts | None = None
    minimum: float | None = None  # Smallest number that float32 can hold; None for a column without numbers
    maximum: float | None = None  # Largest such number
    mean: float = 0.0
    variance: float = 0.0  # Population variance of these numbers
    holds_missing_tokens: bool = False  # True if a cell has a token such as `NA` instead of being empty
    # Count of numbers that are infinite, or too large for TFX, which uses float32.
    num_beyond_float32: int = 0
    # Count of cells in a text column that are not numbers; None when there are many.
    num_non_numbers: int | None = None
    # A file in which a text column holds numbers alone, and one with other text; None without such two.
    mixed_files: tuple[Path, Path] | None = None
    # Type by CsvExampleGen's rule, to which `NA` is a text: `integer`, `float`, `string`, `empty`.
    stored_as: ColumnType = "empty"
    holds_beyond_int64: bool = False  # True if integers beyond int64 make it text by that rule

    @property
    def num_distinct(self) -> int | None:
        """Number of distinct values, or None when there are too many to count."""
        return None if self.distinct_values is None else len(self.distinct_values)

    @property
    def is_numeric(self) -> bool:
        return self.type in ("integer", "float")

    @property
    def is_stored_unlike_text(self) -> bool:
        """True if it is text here, but CsvExampleGen would make numbers of it, as of `1_000`."""
        return self.type in ("string", "boolean") and self.stored_as in ("integer", "float")

    @property
    def is_text_by_few_cells(self) -> bool:
        """True if the column would be numeric but for a few cells, which may be mistakes."""
        if self.type != "string" or not self.num_non_numbers:
            return False
        num_numbers = self.num_values - self.num_non_numbers
        return num_numbers >= _MIN_NUMBERS and self.num_non_numbers <= max(
            1, _MAX_NON_NUMBER_SHARE * self.num_values
        )


def is_number(text: str) -> bool:
    """Returns whether TFX reads a text as a number, which `1_0` is not."""
    return re.match(_NUMBER, text, re.ASCII) is not None


def fits_float32(text: str) -> bool:
    """Returns whether float32 can hold a number."""
    return abs(float(text)) < _FLOAT32_LIMIT


def fits_int64(text: str) -> bool:
    """Returns whether int64 can hold a text, if it is an integer at all."""
    return not re.match(_LONG_INTEGER, text) or -(2**63) <= int(text) < 2**63


class ColumnScan:
    """Accumulates the profile of one column, batch by batch."""

    def __init__(self, name: str, known_type: ColumnType | None, store: CellStore):
        from components.example_gen import cells

        self._rule = cells
        self._stored_as = cells.ColumnType.EMPTY
        self._store = store
        self._profile = ColumnProfile(name)
        self._counter: ValueCounter | None = ValueCounter()
        is_text = known_type == "string"
        self._could_be = {"integer": known_type is None, "float": not is_text}
        self._sum = self._squares = 0.0
        self._num_finite = 0
        self._shift: float | None = None
        self._num_non_numbers = 0
        self._num_in_file = self._num_non_numbers_in_file = 0
        self._numbers_in: Path | None = None
        self._text_in: Path | None = None
        self.longest = 0  # characters of a cell

    @property
    def num_rows(self) -> int:
        """Number of cells."""
        return self._profile.num_values + self._profile.num_missing

    def update(self, cells: Any) -> None:
        """Adds the cells (pyarrow string array) of one batch."""
        import pyarrow.compute as pc

        profile = self._profile
        self.longest = max(self.longest, pc.max(pc.utf8_length(cells)).as_py() or 0)
        self._update_storage(cells)
        trimmed, missing = find_missing(cells)
        values = trimmed.filter(pc.invert(missing))
        num_missing = len(cells) - len(values)
        profile.num_missing += num_missing
        profile.num_values += len(values)
        if num_missing and not profile.holds_missing_tokens:
            num_empty = pc.sum(pc.equal(pc.binary_length(cells), 0)).as_py() or 0
            profile.holds_missing_tokens = num_empty < num_missing
        if not len(values):
            return
        self._count(values)
        if self._could_be["integer"]:
            self._could_be["integer"] = _cast(values, pa.int64()) is not None
        self._num_in_file += len(values)
        if self._num_non_numbers <= _MAX_NON_NUMBERS or not self._num_non_numbers_in_file:
            is_number = pc.match_substring_regex(values, _NUMBER)
            num_others = len(values) - (pc.sum(is_number).as_py() or 0)
            self._num_non_numbers += num_others
            self._num_non_numbers_in_file += num_others
        if self._could_be["float"]:
            numbers = _cast(values, pa.float64())
            if numbers is None:
                self._could_be["float"] = False
            else:
                self._add_numbers(numbers)

    def _update_storage(self, cells: Any) -> None:
        """Adds cells to the type by CsvExampleGen's rule."""
        import pyarrow.compute as pc

        before, text = self._stored_as, self._rule.ColumnType.TEXT
        self._stored_as = self._rule.infer_type(cells, before)
        if before is not text and self._stored_as is text and self._could_be["float"]:
            has_long = pc.any(pc.match_substring_regex(cells, _LONG_INTEGER)).as_py()
            self._profile.holds_beyond_int64 = bool(has_long)

    def _count(self, values: Any) -> None:
        """Counts values, or stores them where they are too many."""
        import pyarrow.compute as pc

        if self._counter is not None:
            counts = pc.value_counts(values)
            if len(counts) <= MAX_DISTINCT:
                self._counter.add(ValueCounts(counts.field(0), counts.field(1).to_numpy()))
                if not self._counter.is_beyond(MAX_DISTINCT):
                    return
                values = values.slice(0, 0)  # they are among the counted ones
            if counted := self._counter.merge():
                self._store.add(self._profile.name, counted.texts, counted.occurrences)
            self._counter = None
        if len(values):
            self._store.add(self._profile.name, values, np.ones(len(values), np.int64))

    def end_file(self, file: Path) -> None:
        if self._num_non_numbers_in_file:
            self._text_in = self._text_in or file
        elif self._num_in_file:
            self._numbers_in = self._numbers_in or file
        self._num_in_file = self._num_non_numbers_in_file = 0

    def _add_numbers(self, numbers: Any) -> None:
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
        profile = self._profile
        profile.distinct_values = None if self._counter is None else self._counter.merge()
        profile.stored_as = _STORED_AS[self._stored_as.name]
        if not profile.num_values:
            profile.type = "empty"
        elif self._could_be["integer"] and self._could_be["float"]:  # float does not read 0x1A
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
        if profile.type == "string" and self._numbers_in and self._text_in:
            profile.mixed_files = self._numbers_in, self._text_in
        return profile


def _cast(values: Any, target: Any) -> Any:
    try:
        return values.cast(target)
    except pa.ArrowInvalid:
        return None
