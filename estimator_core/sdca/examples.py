"""A batch of examples in the form of the SDCA kernel's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.column_kinds import is_categorical
from estimator_core.feature_columns.state_manager import StateManager, create_state
from estimator_core.feature_columns.transformation_cache import FeatureTransformationCache


class SparseFeature(NamedTuple):
    """A categorical column: the categories of each example."""

    example_index: tf.Tensor  # int64 `[n]`, index of the example of each value
    category: tf.Tensor  # int64 `[n]`; no example has a category twice
    value: tf.Tensor  # float32 `[n]`, 1 for a category that occurs once without a weight
    weights: Any  # Variable `[num_buckets, 1]`


class DenseFeature(NamedTuple):
    """A numeric column."""

    values: tf.Tensor  # float32 `[batch_size, size]`
    weights: Any  # Variable `[size, 1]`; `[1]` for the bias


class Examples(NamedTuple):
    """A batch of examples."""

    ids: tf.Tensor  # string `[batch_size]`
    labels: tf.Tensor  # float32 `[batch_size]`
    example_weights: tf.Tensor  # float32 `[batch_size]`
    sparse: list[SparseFeature]  # Categorical columns in order of name
    dense: list[DenseFeature]  # Numeric columns in order of name, and the bias


def features_with_weights(
    features: Mapping[str, Any], feature_columns: Sequence[Any], batch_size: tf.Tensor
) -> tuple[list[SparseFeature], list[DenseFeature]]:
    """Returns the features with their variables of the linear model in the current variable scope.

    `features`: dict of feature name to `Tensor` or `SparseTensor`, `[batch_size, ...]`.
    """
    sparse: list[SparseFeature] = []
    dense: list[DenseFeature] = []
    with tf1.variable_scope("linear_model", reuse=True):
        cache = FeatureTransformationCache(features)
        state_manager = StateManager()
        create_state([column for column in feature_columns if not is_categorical(column)], state_manager)
        for column in feature_columns:
            categorical = is_categorical(column)
            size = column.num_buckets if categorical else column.variable_shape.num_elements()
            with tf1.variable_scope(column.name):
                weights = _variable("weights", [size, 1])
            if categorical:
                ids, id_weights = column.get_sparse_tensors(cache, state_manager)
                values = _unique_categories(ids, id_weights, column.num_buckets)
                sparse.append(SparseFeature(*values, weights))
                continue
            if column.variable_shape.rank != 1:
                raise ValueError(
                    f"LinearSDCA takes columns of one dimension, and {column.name} has the shape "
                    f"{column.variable_shape}: give the numbers of an example as one row, and a "
                    "categorical column as it is, without an indicator_column around it. "
                    f"Received: {column!r}"
                )
            dense.append(DenseFeature(column.get_dense_tensor(cache, state_manager), weights))
        bias = _variable("bias_weights", [1])
    dense.append(DenseFeature(tf.ones([batch_size, 1]), bias))
    return sparse, dense


def _variable(name: str, shape: list[int]) -> Any:
    """Returns a variable of the model, or its only part."""
    variable = tf1.get_variable(name, shape)
    if isinstance(variable, tf.Variable):
        return variable
    parts = list(variable)
    if len(parts) > 1:
        raise ValueError(
            "LinearSDCA does not support partitioned variables: leave out the partitioner of the linear "
            f"model. Received: {variable.name} in {len(parts)} parts"
        )
    return parts[0]


def with_probabilities_as_weights(examples: Examples) -> Examples:
    """Returns each example twice: with label 1, weighted by its label, and with label 0 and the rest.

    Their logistic losses sum to the cross entropy of a label that is a probability; the kernel
    takes only the labels 0 and 1.
    """
    batch_size = tf.shape(examples.labels, out_type=tf.int64)[0]
    labels, weights = examples.labels, examples.example_weights
    return Examples(
        ids=tf.concat([examples.ids + "/1", examples.ids + "/0"], axis=0),
        labels=tf.concat([tf.ones_like(labels), tf.zeros_like(labels)], axis=0),
        example_weights=tf.concat([labels * weights, (1.0 - labels) * weights], axis=0),
        sparse=[
            SparseFeature(
                tf.concat([feature.example_index, feature.example_index + batch_size], axis=0),
                tf.tile(feature.category, [2]),
                tf.tile(feature.value, [2]),
                feature.weights,
            )
            for feature in examples.sparse
        ],
        dense=[DenseFeature(tf.tile(feature.values, [2, 1]), feature.weights) for feature in examples.dense],
    )


def _unique_categories(
    ids: tf.SparseTensor, id_weights: tf.SparseTensor | None, num_buckets: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns examples, categories and values, summed over duplicates of an example and a category.

    Ids below 0, words out of the vocabulary, are left out.
    """
    example_index, category = ids.indices[:, 0], tf.cast(ids.values, tf.int64)
    value = tf.ones_like(category, tf.float32) if id_weights is None else id_weights.values
    is_valid = category >= 0
    example_index, category, value = (
        tf.boolean_mask(tensor, is_valid) for tensor in (example_index, category, value)
    )
    pair, position = tf.unique(example_index * num_buckets + category)
    total = tf.math.unsorted_segment_sum(tf.cast(value, tf.float32), position, tf.size(pair))
    return pair // num_buckets, pair % num_buckets, total
