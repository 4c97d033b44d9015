"""Many columns of one type as one sparse matrix, so that a graph does not grow with its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Packs = Mapping[str, Sequence[str]]
"""Names of the columns of each pack, by the name of the pack."""


def packed_name(pack: str, dtype: tf.DType) -> str:
    """Returns the name of the feature that has the columns of one type in a pack."""
    return f"{pack}/{dtype.name}"


def columns_by_type(
    pack: str, columns: Sequence[str], dtypes: Mapping[str, tf.DType]
) -> dict[str, list[int]]:
    """Returns the positions of a pack's columns by the name of the feature that has them."""
    by_type: dict[str, list[int]] = {}
    for position, column in enumerate(columns):
        if column not in dtypes:
            raise ValueError(f"The pack {pack!r} has a column that is not a feature. Received: {column!r}")
        by_type.setdefault(packed_name(pack, dtypes[column]), []).append(position)
    return by_type


def parse_packed(
    serialized: Any, feature_spec: Mapping[str, Any], packs: Packs, rows: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the features of tf.Examples, with the columns of packs as sparse matrices.

    The matrices of a pack are named by `packed_name`, and have the shape `[batch_size, columns of the pack]`:
    each has the columns of its type. A `VarLenFeature` without a value has no entry. A `FixedLenFeature`
    without a value has its default; without a default, it is an InvalidArgumentError in a tf.Example, and
    has no entry in `rows`.

    Args:
        serialized: tf.Examples, string `[batch_size]`.
        feature_spec: Dict of feature name to `VarLenFeature` or `FixedLenFeature` of one value.
        packs: Columns of each pack. The columns outside of packs are parsed as they are.
        rows: Further rows: the values of each packed column `[num_rows]`, where some may be missing, see
            `is_known`. They follow the parsed ones.

    Raises:
        ValueError: A column of a pack has no spec.
    """
    if not packs:
        return dict(tf.io.parse_example(serialized=serialized, features=dict(feature_spec)))
    packed = dict.fromkeys(column for columns in packs.values() for column in columns)
    dtypes = {name: kind.dtype for name, kind in feature_spec.items()}
    matrices = {
        name: (columns, positions)
        for pack, columns in packs.items()
        for name, positions in columns_by_type(pack, columns, dtypes).items()
    }
    spec = dict(feature_spec)
    for name in packed:  # a packed column has at most one value for each example
        kind = feature_spec[name]
        spec[name] = tf.io.VarLenFeature(kind.dtype)
        if isinstance(kind, tf.io.FixedLenFeature):
            spec[name] = tf.io.FixedLenFeature([], kind.dtype, _default(kind))
    features = tf.io.parse_example(serialized=serialized, features=spec)
    num_parsed = tf.size(serialized, tf.int64)
    for name, (columns, positions) in matrices.items():
        cells = []
        fixed = [at for at in positions if isinstance(spec[columns[at]], tf.io.FixedLenFeature)]
        sparse = sorted(set(positions) - set(fixed))
        if fixed:
            values = tf.stack([features[columns[at]] for at in fixed])
            cells.append(_cells_of_rows(values, tf.ones_like(values, tf.bool), fixed, 0))
        if sparse:
            cells.append(_cells([features[columns[at]] for at in sparse], sparse))
        num_rows = num_parsed
        if rows is not None:
            values, is_present = _with_defaults(rows, [columns[at] for at in positions], feature_spec)
            cells.append(_cells_of_rows(values, is_present, positions, num_parsed))
            num_rows += tf.shape(values, tf.int64)[1]
        indices, values = (tf.concat(parts, axis=0) for parts in zip(*cells, strict=True))
        shape = tf.stack([num_rows, tf.constant(len(columns), tf.int64)])
        features[name] = tf.sparse.reorder(tf.SparseTensor(indices, values, shape))
    for column in packed:
        del features[column]
    return features


def _cells(columns: Sequence[Any], positions: Sequence[int]) -> tuple[Any, Any]:
    """Returns the indices and the values of sparse columns in their matrix."""
    counts = tf.concat(tf.shape_n([column.values for column in columns]), axis=0)
    numbers = tf.repeat(tf.constant(positions, tf.int64), counts)
    rows = tf.concat([column.indices for column in columns], axis=0)[:, 0]
    values = tf.concat([column.values for column in columns], axis=0)
    return tf.stack([rows, numbers], axis=1), values


def _default(kind: Any) -> Any:
    """Returns the default of a spec as a scalar, or None if it has none."""
    default = getattr(kind, "default_value", None)
    return None if default is None else np.reshape(default, []).item()


def _with_defaults(
    rows: Mapping[str, Any], columns: Sequence[str], feature_spec: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Returns the values of columns of a type `[num_columns, num_rows]`, and which of them are known."""
    values = tf.stack([rows[column] for column in columns])
    is_present = is_known(values)
    defaults = [_default(feature_spec[column]) for column in columns]
    if all(default is None for default in defaults):
        return values, is_present
    has_default = tf.constant([[default is not None] for default in defaults])
    filled = [[MISSING[values.dtype] if default is None else default] for default in defaults]
    values = tf.where(is_present, values, tf.constant(filled, values.dtype))
    return values, tf.logical_or(is_present, has_default)


def _cells_of_rows(matrix: Any, is_present: Any, positions: Sequence[int], first_row: Any) -> tuple[Any, Any]:
    """Returns the indices and the known values of `[num_columns, num_rows]` in their matrix."""
    places = tf.where(is_present)
    numbers = tf.gather(tf.constant(positions, tf.int64), places[:, 0])
    indices = tf.stack([places[:, 1] + first_row, numbers], axis=1)
    return indices, tf.boolean_mask(matrix, is_present)


MISSING = {tf.float32: float("nan"), tf.int64: tf.int64.min, tf.string: ""}
"""Mark of a missing value by type: JSON and tensors have no other."""


def is_known(values: Any) -> Any:
    """Returns False for the values that are marks of missing ones, see `MISSING`."""
    if values.dtype == tf.float32:
        return tf.logical_not(tf.math.is_nan(values))
    return tf.not_equal(values, MISSING[values.dtype])
