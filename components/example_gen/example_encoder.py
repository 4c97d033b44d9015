"""Serializes the rows of a record batch as tf.Examples, column by column.

Source: tf.Example's wire format. The bytes are those of `SerializeToString(deterministic=True)` in Python's
protobuf; `tfx_bsl`'s encoder puts the features in any order.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.cells import with_nulls

# Each message here has one or two fields of bytes. In a Feature, the tag of the field is its kind:
_KINDS = {pa.binary(): b"\x0a", pa.float32(): b"\x12", pa.int64(): b"\x1a", pa.null(): b""}
_FIRST, _SECOND = b"\x0a", b"\x12"
_VARINT_LIMITS = np.array([1 << 7 * size for size in range(1, 10)], np.uint64)

_MAX_ROWS, _MAX_CELLS = 16_384, 1 << 22  # encoded at a time


def serialize(batch: Any, leaves_out_nulls: bool = False) -> Iterator[Any]:
    """Yields pyarrow binary arrays with a serialized tf.Example for each row.

    `leaves_out_nulls`: True leaves out the feature of a null, so that a parser takes its default. False
    writes a feature without a value, as TFX's CsvExampleGen does.
    """
    num_rows = max(1, min(_MAX_ROWS, _MAX_CELLS // batch.num_columns))
    for begin in range(0, len(batch), num_rows):
        yield _serialized(batch.slice(begin, num_rows), leaves_out_nulls)


def _serialized(batch: Any, leaves_out_nulls: bool) -> Any:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    parts = []
    # By the bytes of the names, but `aa` before its prefix `a`.
    for name in sorted(columns, key=lambda name: [*name.encode(), 256]):
        values = value_bytes(columns[name])
        kind = _KINDS[columns[name].type]
        entry = functools.partial(_entry, name.encode(), kind, leaves_out_nulls)
        parts += [_by_size(values, entry), values]
    features = _join(parts)
    return _join([_by_size(features, lambda size: _FIRST + varint(size)), features])


def value_bytes(column: Any) -> Any:
    """Returns a pyarrow binary array of the bytes that stand for the values of a column."""
    if pa.types.is_binary(column.type):
        return column
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.binary())
    numbers = column.fill_null(0).to_numpy()
    if pa.types.is_integer(column.type):
        sizes, content = _varints(numbers.view(np.uint64))
    else:
        sizes, content = np.full(len(numbers), 4), numbers.astype("<f4")
    offsets: Any = np.zeros(len(numbers) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    values = pa.Array.from_buffers(pa.binary(), len(numbers), buffers)
    return with_nulls(values, column.is_null()) if column.null_count else values


def feature_bytes(column_type: Any, value: bytes) -> bytes:
    """Returns a serialized Feature with one value, which has these bytes."""
    return _feature(_KINDS[column_type], len(value)) + value


def _feature(kind: bytes, size: int | None) -> bytes:
    """Returns the bytes before a value of `size` bytes in a Feature; None is an empty list of values."""
    if not kind:
        return b""
    if size is None:
        return kind + varint(0)
    head = _FIRST + varint(size)
    return kind + varint(len(head) + size) + head


def _entry(key: bytes, kind: bytes, leaves_out_nulls: bool, size: int | None) -> bytes:
    """Returns the bytes before the value in an entry of Features."""
    if size is None and leaves_out_nulls:
        return b""
    feature = _feature(kind, size)
    feature = _SECOND + varint(len(feature) + (size or 0)) + feature
    entry = _FIRST + varint(len(key)) + key + feature
    return _FIRST + varint(len(entry) + (size or 0)) + entry


def _by_size(values: Any, head: Callable[[Any], bytes]) -> Any:
    """Returns the head of each value, a function of its size; a scalar if all are equal."""
    sizes = pc.binary_length(values).dictionary_encode("encode")
    heads = pa.array([head(size) for size in sizes.dictionary.to_pylist()], pa.binary())
    return heads[0] if len(heads) == 1 else heads.take(sizes.indices)


def _join(parts: list[Any]) -> Any:
    return pc.binary_join_element_wise(
        *parts, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=""
    )


def varint(number: int) -> bytes:
    """Returns a number in protobuf's encoding: seven bits a byte, the lowest first."""
    digits = []
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def _varints(numbers: Any) -> tuple[Any, Any]:
    """Returns the sizes and the bytes of the varints of uint64 numbers."""
    sizes: Any = np.searchsorted(_VARINT_LIMITS, numbers, side="right") + 1
    places = np.arange(sizes.max(initial=1))
    digits = (numbers[:, None] >> (7 * places).astype(np.uint64)).astype(np.uint8) | 0x80
    digits[np.arange(len(numbers)), sizes - 1] &= 0x7F
    return sizes, digits[places < sizes[:, None]]
