"""Lookups for features with one id for each example, without the operations for lists of ids."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1


class SingleIds(NamedTuple):
    """The ids of a categorical feature with one for each example.

    Attributes:
        ids: int64 `[batch_size]`; 0 where there is none.
        is_there: bool `[batch_size]`.
    """

    ids: tf.Tensor
    is_there: tf.Tensor

    def looked_up(self, table: tf.Variable, for_training: bool) -> tf.Tensor:
        """Returns the rows of a table, `[batch_size, ...]`, and zeros where there is no id.

        The values are those of `tf.nn.safe_embedding_lookup_sparse`, bit for bit. So is the gradient in
        training: it has a row for each different id, in the order in which they occur.

        Args:
            table: Variable `[num_buckets, width]`.
            for_training: False takes fewer operations, whose gradient has a row for each example.

        Raises:
            tf.errors.InvalidArgumentError: When it runs, and an id is not below the number of buckets.
        """
        if not for_training:
            return _or_zeros(self.is_there, tf.gather(table, self.ids))
        different, positions = tf.unique(self.ids)
        graph = tf1.get_default_graph()
        # One after the other: with replicas, a variable is looked up by a `GatherV2`, too.
        with graph.gradient_override_map({"ResourceGather": _GRADIENT_OF_TABLE}):
            rows = tf.gather(table, different)
        with graph.gradient_override_map({"GatherV2": _GRADIENT_OF_ROWS}):
            rows = tf.gather(rows, positions)
        return _or_zeros(self.is_there, rows)


def _or_zeros(is_there: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns `rows`, `[batch_size, ...]`, with zeros for examples without an id."""
    # Unlike `tf.where`, it takes a condition for each row, and copies whole rows.
    return tf.raw_ops.Select(condition=is_there, x=rows, y=tf.zeros_like(rows))


# Shorter gradients of the two lookups, by name: a function as a gradient would keep the graph for ever.
_GRADIENT_OF_TABLE = "EstimatorCoreRowsOfTable"
_GRADIENT_OF_ROWS = "EstimatorCoreRowsOfExamples"


@tf.RegisterGradient(_GRADIENT_OF_TABLE)
def _gradient_of_table(operation: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    """Returns the gradients of a `ResourceGather` of a list of rows, without reshaping it."""
    handle, indices = operation.inputs
    shape = tf.raw_ops.VariableShape(input=handle, out_type=tf.int64)
    return [tf.IndexedSlices(gradient, indices, shape), None]


@tf.RegisterGradient(_GRADIENT_OF_ROWS)
def _gradient_of_rows(operation: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    """Returns the gradients of a `GatherV2` of the first axis: the sums by row."""
    rows, positions, _ = operation.inputs
    return [tf.math.unsorted_segment_sum(gradient, positions, tf.shape(rows)[0]), None, None]


def embedded_single_ids(
    column: Any, cache: Any, state_manager: Any, for_training: bool
) -> tf.Tensor | None:
    """Returns what an embedding column gives, `[batch_size, dimension]`; None if it takes the general way.

    A column takes a dense feature for a sparse one, looks up each id that occurs once, and takes the mean of
    the embeddings of each example. For one id that is its embedding.

    Args:
        column: Any dense column.
        cache: The `FeatureTransformationCache`.
        state_manager: The `StateManager`.
        for_training: See `SingleIds.looked_up`.
    """
    if not _is_plain_embedding(column):
        return None
    single = single_ids(column.categorical_column, cache, state_manager)
    if single is None:
        return None
    table = state_manager.get_variable(column, "embedding_weights")
    if not isinstance(table, tf.Variable):  # in parts
        return None
    return single.looked_up(table, for_training)


def single_ids(categorical: Any, cache: Any, state_manager: Any) -> SingleIds | None:
    """Returns the ids of a categorical column, if its feature is dense with one value for each example.

    Args:
        categorical: Any categorical column.
        cache: The `FeatureTransformationCache`.
        state_manager: The `StateManager`.
    """
    if type(categorical) not in _columns_of_ids():
        return None
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
    values = tf.reshape(feature, [-1])
    missing = values.dtype.max if values.dtype.is_unsigned else -1
    is_there = tf.not_equal(values, "" if is_text else tf.constant(missing, values.dtype))
    as_sparse = tf.SparseTensor(tf.where(is_there), values, tf.shape(values, out_type=tf.int64))
    ids = categorical.transform_feature(_Feature(as_sparse), state_manager).values
    is_there &= ids >= 0
    return SingleIds(tf.where(is_there, ids, tf.zeros_like(ids)), is_there)


def _is_plain_embedding(column: Any) -> bool:
    return (
        type(column) is _embedding_column()
        and column.use_safe_embedding_lookup
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
