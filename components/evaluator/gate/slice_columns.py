"""Columns by which the gate divides the examples, as compact arrays: numbers, and categories as codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

MAX_VALUES = 20
"""Number of values of a category, beyond which it makes no slices."""

Numbers: TypeAlias = npt.NDArray[np.float32]
"""Values of a column, NaN where missing: `[n]`."""


@dataclass(frozen=True)
class Codes:
    """A category."""

    codes: npt.NDArray[np.int8]  # Index of each example's value in `names`, -1 where missing: `[n]`
    names: tuple[str, ...] | None  # The values, as text; None if there are more than `MAX_VALUES`


Column: TypeAlias = Numbers | Codes


def is_text(values: Any) -> bool:
    """Returns True if an Arrow array of lists contains text."""
    import pyarrow as pa

    kind = getattr(values.type, "value_type", values.type)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_bytes or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def merge_values(values: Any, same: Mapping[str, str]) -> Any:
    """Returns a column of text with equal names for equivalent values; an example has its first value."""
    import pyarrow as pa

    offsets = values.offsets.to_numpy()
    texts = values.values.take(pa.array(offsets[:-1], mask=np.diff(offsets) == 0))
    encoded = texts.fill_null(b"").dictionary_encode()
    names = [as_text(value).strip() for value in encoded.dictionary.to_pylist()]
    merged = pa.array([same.get(name, name).encode() for name in names], pa.binary())
    return pa.ListArray.from_arrays(np.arange(len(values) + 1, dtype=np.int32), merged.take(encoded.indices))


def make_column(values: Any, is_category: bool) -> Column:
    """Returns a column of a batch; the first value of each example counts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = len(values)
    if pa.types.is_null(values.type):
        return np.full(size, np.nan, np.float32)
    lengths = np.diff(values.offsets.to_numpy())
    has_value = lengths > 0
    firsts = values.offsets.to_numpy()[:-1][has_value]
    present = values.values.take(pa.array(firsts))
    if not is_category and not is_text(values):
        numbers: Numbers = np.full(size, np.nan, np.float32)
        numbers[has_value] = present.to_numpy(zero_copy_only=False)
        return numbers
    encoded = pc.dictionary_encode(present)
    codes: npt.NDArray[np.int8] = np.full(size, -1, np.int8)
    if len(encoded.dictionary) > MAX_VALUES:
        return Codes(codes, None)
    codes[has_value] = encoded.indices.to_numpy(zero_copy_only=False)
    return Codes(codes, tuple(as_text(value) for value in encoded.dictionary.to_pylist()))


def join_columns(parts: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
    """Joins the columns of batches, except columns whose kind changes between them."""
    joined = {}
    for name in parts[0] if parts else ():
        columns = [part.get(name) for part in parts]
        if all(isinstance(column, np.ndarray) for column in columns):
            joined[name] = np.concatenate(columns)
        elif all(isinstance(column, Codes) for column in columns):
            joined[name] = _join_codes(columns)
    return joined


def _join_codes(parts: Sequence[Any]) -> Codes:
    names = sorted({name for part in parts for name in part.names or ()})
    size = sum(len(part.codes) for part in parts)
    if len(names) > MAX_VALUES or any(part.names is None for part in parts):
        return Codes(np.full(size, -1, np.int8), None)
    index = {name: number for number, name in enumerate(names)}
    codes = [np.array([*(index[name] for name in part.names), -1], np.int8)[part.codes] for part in parts]
    return Codes(np.concatenate(codes), tuple(names))


def as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
