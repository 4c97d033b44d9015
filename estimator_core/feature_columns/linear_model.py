"""A linear model over feature columns: one weight per number and per category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.column_kinds import is_categorical, is_dense, sorted_columns
from estimator_core.feature_columns.single_ids import single_ids
from estimator_core.feature_columns.state_manager import StateManager, create_state
from estimator_core.feature_columns.transformation_cache import FeatureTransformationCache

_SEGMENT_SUMS = {
    "sum": tf.sparse.segment_sum,
    "mean": tf.sparse.segment_mean,
    "sqrtn": tf.sparse.segment_sqrt_n,
}
SPARSE_COMBINERS = ("mean", "sqrtn", "sum")


class LinearModel(NamedTuple):
    """Outputs and variables of `linear_model`."""

    logits: tf.Tensor  # float32 `[batch_size, units]`
    bias: Any  # Variable `[units]`
    weights: list[Any]  # Variables `[column size, units]`, in the order of the column names


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    for_training: bool = True,
) -> LinearModel:
    """Returns the sum over columns of value times weight, plus a bias.

    Variables start at zero and are created below the current variable scope as
    `linear_model/<column>/weights` and `linear_model/bias_weights`.

    `for_training`: False uses fewer operations, whose gradients may have a row for each example.

    Source: tf.estimator's linear models (`tf.compat.v1.feature_column.linear_model`).
    """
    if sparse_combiner not in SPARSE_COMBINERS:
        raise ValueError(
            f"sparse_combiner must be one of {SPARSE_COMBINERS}. "
            f"Received: sparse_combiner={sparse_combiner!r}"
        )
    columns = sorted_columns(feature_columns)
    for column in columns:
        if not (is_categorical(column) or is_dense(column)):
            raise ValueError(
                "A linear model takes categorical and dense columns; sequences are for RNN models. "
                f"Received: {column!r}"
            )
    with tf1.variable_scope("linear_model"):
        cache = FeatureTransformationCache(features)
        state_manager = StateManager()
        create_state([column for column in columns if not is_categorical(column)], state_manager)
        weights = []
        weighted_sums = []
        for column in columns:
            size = column.num_buckets if is_categorical(column) else column.variable_shape.num_elements()
            with tf1.variable_scope(column.name):
                weight = _zeros("weights", [size, units])
                if is_categorical(column):
                    weighted_sum = _sparse_sum(
                        column, weight, sparse_combiner, cache, state_manager, for_training
                    )
                else:
                    dense = column.get_dense_tensor(cache, state_manager)
                    flat = tf.reshape(dense, [-1, column.variable_shape.num_elements()])
                    weighted_sum = tf.matmul(flat, tf.convert_to_tensor(weight), name="weighted_sum")
            weights.append(weight)
            weighted_sums.append(weighted_sum)
        bias = _zeros("bias_weights", [units])
        total = tf.add_n(weighted_sums, name="weighted_sum_no_bias")
        return LinearModel(tf.nn.bias_add(total, bias, name="weighted_sum"), bias, weights)


def _zeros(name: str, shape: list[int]) -> Any:
    return tf1.get_variable(
        name, shape, dtype=tf.float32, initializer=tf1.initializers.zeros(), use_resource=True
    )


def _sparse_sum(
    column: Any,
    weight: Any,
    combiner: str,
    cache: FeatureTransformationCache,
    state_manager: StateManager,
    for_training: bool,
) -> tf.Tensor:
    single = single_ids(column, cache, state_manager) if isinstance(weight, tf.Variable) else None
    if single is not None:  # every combiner returns the weight of the only id
        return single.looked_up(weight, for_training)
    ids, id_weights = column.get_sparse_tensors(cache, state_manager)
    if ids.shape.rank != 2:
        # All values of an example are one bag of ids: [batch_size, any].
        batch_size = tf.shape(ids, out_type=tf.int64)[0]
        ids = tf.sparse.reshape(ids, [batch_size, -1])
        if id_weights is not None:
            id_weights = tf.sparse.reshape(id_weights, [batch_size, -1])
    return sparse_sum(weight, ids, id_weights, combiner)


def sparse_sum(
    weight: Any, ids: tf.SparseTensor, id_weights: tf.SparseTensor | None, combiner: str
) -> tf.Tensor:
    """Returns the sum or average of the weights of each example's ids, `[batch_size, units]`.

    An id below 0 counts as missing; an example without ids gets zeros. Values and gradients are bitwise
    equal to those of `tf.nn.safe_embedding_lookup_sparse`, but faster: after an optimizer has updated rows,
    TensorFlow rewrites that function's operations to a lookup in a copy of all weights, made in each step.
    With a million buckets, the copy took a third of the time of a training step.

    `weight`: variable `[num_buckets, units]`, may be partitioned.
    `ids`: int64 `[batch_size, any]`.
    `id_weights`: float32 with the same indices; None weighs each id by 1.
    `combiner`: "sum", "mean" (by the sum of the id_weights) or "sqrtn" (by the root of their squares' sum).
    """
    if id_weights is not None or not isinstance(weight, tf.Variable):
        return tf.nn.safe_embedding_lookup_sparse(
            weight, ids, sparse_weights=id_weights, combiner=combiner, name="weighted_sum"
        )
    with tf.name_scope("weighted_sum"):
        valid_ids = tf.sparse.retain(ids, ids.values >= 0)
        filled, is_empty = tf.sparse.fill_empty_rows(valid_ids, tf.constant(0, ids.dtype))
        different, positions = tf.unique(filled.values)
        # This op between `unique` and the lookup prevents TensorFlow's rewriting.
        positions = tf.ensure_shape(positions, [None])
        looked_up = tf.gather(weight, different)
        rows = filled.indices[:, 0]
        sums = _SEGMENT_SUMS[combiner](looked_up, positions, rows)
        return tf.where(is_empty[:, tf.newaxis], tf.zeros_like(sums), sums)
