"""Conversion of feature columns to the matrix that trees split, and the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core.feature_columns.column_kinds import is_categorical, is_dense, is_numeric, sorted_columns
from estimator_core.feature_columns.state_manager import StateManager, create_state
from estimator_core.feature_columns.transformation_cache import FeatureTransformationCache

_FEW_CATEGORIES = 256


class ColumnRange(NamedTuple):
    """The matrix columns of one feature column."""

    # Name for importances and contributions: the name of the feature column, or of the categorical
    # column in an indicator column.
    name: str
    size: int  # Number of matrix columns


def checked_columns(feature_columns: Any) -> list[Any]:
    """Returns the feature columns sorted by name."""
    columns = sorted_columns(feature_columns)
    for column in columns:
        if hasattr(column, "dimension") and hasattr(column, "combiner"):
            raise ValueError(
                "Trees train no embedding: use the categorical column itself, or "
                "tf.feature_column.indicator_column. "
                f"Received: {column!r}"
            )
        if not (is_categorical(column) or is_dense(column)):
            raise ValueError(
                "Boosted trees take numeric, bucketized, indicator and categorical columns. "
                f"Received: {column!r}"
            )
    return columns


def column_ranges(columns: list[Any]) -> list[ColumnRange]:
    """Returns the range of each feature column in the matrix, in order."""
    return [
        ColumnRange(
            str(column.categorical_column.name if _is_indicator(column) else column.name), _size(column)
        )
        for column in columns
    ]


def _is_bucketized(column: Any) -> bool:
    return hasattr(column, "boundaries") and hasattr(column, "source_column")


def _is_indicator(column: Any) -> bool:
    return is_dense(column) and hasattr(column, "categorical_column")


def _size(column: Any) -> int:
    if _is_bucketized(column):
        return int(tf.TensorShape(column.source_column.shape).num_elements())
    if is_categorical(column):
        return int(column.num_buckets)
    return int(column.variable_shape.num_elements())


def column_matrix(features: Mapping[str, Any], columns: list[Any]) -> tf.Tensor:
    """Returns the values of all columns side by side, float32 `[batch_size, sum of sizes]`.

    A numeric column gives its numbers, and NaN for missing ones; a bucketized column the index of
    the bucket, and NaN for NaN; a categorical or an indicator column the count of each category.

    `features`: dict of feature name to `Tensor` or `SparseTensor`, `[batch_size, ...]`.
    """
    with tf.name_scope("column_matrix"):
        cache = FeatureTransformationCache(features)
        state = StateManager()
        create_state([column for column in columns if not is_categorical(column)], state)
        parts = []
        for column in columns:
            with tf.name_scope(column.name):
                values = tf.cast(_values(column, cache, state), tf.float32)
                parts.append(tf.reshape(values, [-1, _size(column)]))
        return tf.concat(parts, axis=1) if len(parts) > 1 else parts[0]


def _values(column: Any, cache: FeatureTransformationCache, state: StateManager) -> tf.Tensor:
    if _is_bucketized(column):
        source = cache.get(column.source_column, state)
        buckets = tf.cast(cache.get(column, state), tf.float32)
        return tf.where(tf.math.is_nan(tf.cast(source, tf.float32)), float("nan"), buckets)
    if _is_indicator(column):
        return _counts(column.categorical_column, cache, state)
    if is_categorical(column) and not is_numeric(column):
        return _counts(column, cache, state)
    return column.get_dense_tensor(cache, state)


def _counts(column: Any, cache: FeatureTransformationCache, state: StateManager) -> tf.Tensor:
    """Returns the count of each category, `[batch_size, num_buckets]`, as an indicator column does.

    That one makes `[batch_size, values of an example, num_buckets]` first, too much for many values.
    """
    words = _word_of_example(column, cache, state)
    if words is not None:
        return tf.cast(tf.equal(words, tf.constant(column.vocabulary_list, words.dtype)), tf.float32)
    ids, weights = column.get_sparse_tensors(cache, state)
    if weights is not None:
        return tf.feature_column.indicator_column(column).get_dense_tensor(cache, state)
    size = tf.cast(column.num_buckets, tf.int64)
    values = tf.cast(ids.values, tf.int64)
    places = tf.stack([ids.indices[:, 0], values], axis=1)
    valid_places = tf.boolean_mask(places, (values >= 0) & (values < size))
    ones = tf.ones(tf.shape(valid_places)[:1])
    return tf.scatter_nd(valid_places, ones, tf.stack([ids.dense_shape[0], size]))


def _word_of_example(column: Any, cache: FeatureTransformationCache, state: StateManager) -> tf.Tensor | None:
    """Returns the words, `[batch_size, 1]`, if comparing them with each category gives the counts.

    This takes a few operations in place of a lookup table and dozens of operations for each column. None if
    an example may have several words, or there are many categories, or unknown words are counted.
    """
    vocabulary = getattr(column, "vocabulary_list", None)
    if vocabulary is None or len(vocabulary) > _FEW_CATEGORIES or len(vocabulary) != column.num_buckets:
        return None
    words = cache.get(column.key, state)
    if not isinstance(words, tf.Tensor) or words.shape.rank != 2 or words.shape[1] != 1:
        return None
    is_text = column.dtype == tf.string
    if column.default_value != -1 or ("" if is_text else -1) in vocabulary:
        return None  # for a missing word, too
    if is_text:
        return words if words.dtype == tf.string else None
    return tf.cast(words, tf.int64) if words.dtype.is_integer else None
