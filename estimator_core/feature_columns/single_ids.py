"""Lookups of features with one id for each example, which need fewer operations than lists of ids."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1


class SingleIds(NamedTuple):
    """The ids of a categorical feature with at most one id for each example."""

    ids: tf.Tensor  # int64 `[batch_size]`; 0 where there is none
    is_there: tf.Tensor  # bool `[batch_size]`, True where there is an id

    def looked_up(self, table: tf.Variable, for_training: bool) -> tf.Tensor:
        """Returns the rows of a table, `[batch_size, ...]`, and zeros for examples without an id.

        The values are bitwise equal to those of `tf.nn.safe_embedding_lookup_sparse`. In training, the
        gradient is equal, too: it has a row for each distinct id, in the order of first occurrence.

        `table`: variable `[num_buckets, width]`.
        """
        if not for_training:
            return _masked(self.is_there, tf.gather(table, self.ids))
        different, positions = tf.unique(self.ids)
        graph = tf1.get_default_graph()
        # Two separate maps: with replicas, the variable's lookup is a `GatherV2`, too.
        with graph.gradient_override_map({"ResourceGather": _GRADIENT_OF_TABLE}):
            rows = tf.gather(table, different)
        with graph.gradient_override_map({"GatherV2": _GRADIENT_OF_ROWS}):
            rows = tf.gather(rows, positions)
        return _masked(self.is_there, rows)


def _masked(is_there: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Returns `rows`, `[batch_size, ...]`, with zeros for examples without an id."""
    # Unlike `tf.where`, it takes one condition for each row, and copies whole rows.
    return tf.raw_ops.Select(condition=is_there, x=rows, y=tf.zeros_like(rows))


# Names of simpler gradients of the two lookups. A function as a gradient would keep the graph alive.
_GRADIENT_OF_TABLE = "EstimatorCoreRowsOfTable"
_GRADIENT_OF_ROWS = "EstimatorCoreRowsOfExamples"


@tf.RegisterGradient(_GRADIENT_OF_TABLE)
def _gradient_of_table(operation: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    """Returns the gradients of a `ResourceGather` of a vector of indices, without reshaping."""
    handle, indices = operation.inputs
    shape = tf.raw_ops.VariableShape(input=handle, out_type=tf.int64)
    return [tf.IndexedSlices(gradient, indices, shape), None]


@tf.RegisterGradient(_GRADIENT_OF_ROWS)
def _gradient_of_rows(operation: tf.Operation, gradient: tf.Tensor) -> list[Any]:
    """Returns the gradients of a `GatherV2` along the first axis: the sums by row."""
    rows, positions, _ = operation.inputs
    return [tf.math.unsorted_segment_sum(gradient, positions, tf.shape(rows)[0]), None, None]


def embedded_single_ids(column: Any, cache: Any, state_manager: Any, for_training: bool) -> tf.Tensor | None:
    """Returns the output of an embedding column, `[batch_size, dimension]`; None for all other cases.

    The column itself would convert a dense feature to a sparse one, look up each distinct id once, and
    average the embeddings of each example: for one id, that is its embedding.
    """
    is_plain = (
        type(column) is _embedding_column()
        and column.use_safe_embedding_lookup
        and column.max_norm is None
        and column.ckpt_to_load_from is None
    )
    if not is_plain:
        return None
    single = single_ids(column.categorical_column, cache, state_manager)
    if single is None:
        return None
    table = state_manager.get_variable(column, "embedding_weights")
    if not isinstance(table, tf.Variable):  # a partitioned table
        return None
    return single.looked_up(table, for_training)


def single_ids(categorical: Any, cache: Any, state_manager: Any) -> SingleIds | None:
    """Returns the ids of a categorical column, if its feature is dense with one value for each example."""
    if type(categorical) not in _columns_of_ids():
        return None
    feature = cache.get(categorical.key, state_manager)
    if not tf.is_tensor(feature) or isinstance(feature, (tf.SparseTensor, tf.RaggedTensor)):
        return None
    is_text = feature.dtype == tf.string
    if feature.shape.rank != 2 or feature.shape[1] != 1 or not (is_text or feature.dtype.is_integer):
        return None
    values = tf.reshape(feature, [-1])
    missing = values.dtype.max if values.dtype.is_unsigned else -1
    is_there = tf.not_equal(values, "" if is_text else tf.constant(missing, values.dtype))
    as_sparse = tf.SparseTensor(tf.where(is_there), values, tf.shape(values, out_type=tf.int64))
    ids = categorical.transform_feature(_Feature(as_sparse), state_manager).values
    is_there &= ids >= 0
    return SingleIds(tf.where(is_there, ids, tf.zeros_like(ids)), is_there)


class _Feature:
    """Feature for `transform_feature` of a categorical column, which transforms each value separately.

    `feature`: all values, `[number of values]`, including missing ones; the indices don't matter.
    """

    def __init__(self, feature: tf.SparseTensor):
        self._feature = feature

    def get(self, key: Any, state_manager: Any, training: bool | None = None) -> tf.SparseTensor:
        del key, state_manager, training
        return self._feature


@functools.cache
def _columns_of_ids() -> frozenset[type]:
    """Returns the classes of columns that convert each value to an id independently of other values."""
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
    """Returns the function without its deprecation warning, which is not for users: they don't call it."""
    return getattr(function, "__wrapped__", function)
