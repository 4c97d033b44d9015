"""Embeddings of features with one id for each example, without the operations for lists of ids."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


def embedded_single_ids(column: Any, cache: Any, state_manager: Any) -> tf.Tensor | None:
    """Returns what an embedding column gives, `[batch_size, dimension]`; None if it takes the general way.

    A column takes a dense feature for a sparse one, looks up each id that occurs once, and takes the mean of
    the embeddings of each example. For one id that is its embedding, bit for bit; and zeros where the id is
    missing or below 0. Training takes the general way, which adds up gradients of equal ids in its own order.

    Args:
        column: Any dense column.
        cache: The `FeatureTransformationCache`.
        state_manager: The `StateManager`.

    Raises:
        tf.errors.InvalidArgumentError: When it runs, and an id is not below the number of buckets.
    """
    if not _is_plain_embedding(column):
        return None
    categorical = column.categorical_column
    feature = cache.get(categorical.key, state_manager)
    if not tf.is_tensor(feature) or isinstance(feature, (tf.SparseTensor, tf.RaggedTensor)):
        return None
    is_text = feature.dtype == tf.string
    if (
        feature.shape.rank != 2
        or feature.shape[1] != 1
        or not (is_text or feature.dtype.is_integer)
    ):
        return None
    table = state_manager.get_variable(column, "embedding_weights")
    if not isinstance(table, tf.Variable):  # in parts
        return None
    values = tf.reshape(feature, [-1])
    is_there = tf.not_equal(values, "" if is_text else tf.constant(-1, values.dtype))
    as_sparse = tf.SparseTensor(tf.where(is_there), values, tf.shape(values, out_type=tf.int64))
    ids = categorical.transform_feature(_Feature(as_sparse), state_manager).values
    is_there &= ids >= 0
    embedded = tf.gather(table, tf.where(is_there, ids, tf.zeros_like(ids)))
    return tf.where(is_there[:, tf.newaxis], embedded, tf.zeros_like(embedded))


def _is_plain_embedding(column: Any) -> bool:
    return (
        type(column) is _embedding_column()
        and column.use_safe_embedding_lookup
        and type(column.categorical_column) in _columns_of_ids()
        and column.max_norm is None
        and column.ckpt_to_load_from is None
    )


class _Feature:
    """Gives a categorical column its feature, with all values: it changes each, whatever the indices are.

    Args:
        feature: The values, `[number of values]`, none of them left out.
    """

    def __init__(self, feature: tf.SparseTensor):
        self._feature = feature

    def get(self, key: Any, state_manager: Any, training: bool | None = None) -> tf.SparseTensor:
        """Returns the feature."""
        del key, state_manager, training
        return self._feature


@functools.cache
def _columns_of_ids() -> frozenset[type]:
    """Returns the classes of columns that turn each value into an id, whatever the others are."""
    columns = tf.feature_column
    return frozenset(
        {
            type(_quiet(columns.categorical_column_with_hash_bucket)("a", 2)),
            type(_quiet(columns.categorical_column_with_identity)("a", 2)),
            type(_quiet(columns.categorical_column_with_vocabulary_list)("a", ["b"])),
        }
    )


@functools.cache
def _embedding_column() -> Any:
    ids = _quiet(tf.feature_column.categorical_column_with_identity)("a", 2)
    return type(_quiet(tf.feature_column.embedding_column)(ids, 1))


def _quiet(function: Any) -> Any:
    """Returns the function without what warns that it is deprecated: it is not the user who calls it."""
    return getattr(function, "__wrapped__", function)
