"""Kinds of feature columns, and the order of columns in models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from estimator_core.feature_columns.v1_shared_embedding import adapted


def is_categorical(column: Any) -> bool:
    """Returns whether the column gives ids, `[batch_size, any]`, below its `num_buckets`."""
    return hasattr(column, "get_sparse_tensors") and hasattr(column, "num_buckets")


def is_dense(column: Any) -> bool:
    """Returns whether the column gives numbers, `[batch_size] + variable_shape`."""
    return hasattr(column, "get_dense_tensor") and hasattr(column, "variable_shape")


def is_numeric(column: Any) -> bool:
    """Returns whether the column is a `tf.feature_column.numeric_column`."""
    return is_dense(column) and hasattr(column, "normalizer_fn") and hasattr(column, "key")


def is_sequence(column: Any) -> bool:
    """Returns whether the column may give numbers for each time step, `[batch_size, steps, ...]`.

    An embedding or an indicator column does so only over a `sequence_categorical_column_*`; else
    its own `get_sequence_dense_tensor` raises an error.
    """
    return hasattr(column, "get_sequence_dense_tensor")


def sorted_columns(feature_columns: Any) -> list[Any]:
    """Returns the columns sorted by name, the order in which tf.estimator concatenates and adds them."""
    if feature_columns is None:
        raise ValueError("feature_columns must not be empty. Received: None")
    is_one = _is_column(adapted(feature_columns))
    columns = [adapted(c) for c in ([feature_columns] if is_one else _as_list(feature_columns))]
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    by_name: dict[str, Any] = {}
    for column in columns:
        if not _is_column(column):
            raise ValueError(
                "Items of feature_columns must be feature columns, made by the functions of "
                f"tf.feature_column. Received: {column!r}"
            )
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found: {column.name}. Two columns over one base "
                f"feature need different settings, or one of them is too many. Received: {column} "
                f"and {by_name[column.name]}"
            )
        by_name[column.name] = column
    return [by_name[name] for name in sorted(by_name)]


def _is_column(column: Any) -> bool:
    return is_dense(column) or is_categorical(column) or is_sequence(column)


def _as_list(feature_columns: Any) -> list[Any]:
    if isinstance(feature_columns, (str, dict)) or not isinstance(feature_columns, Iterable):
        raise ValueError(
            "feature_columns must be a list of feature columns, made by the functions of "
            f"tf.feature_column. Received: {feature_columns!r}"
        )
    return list(feature_columns)
