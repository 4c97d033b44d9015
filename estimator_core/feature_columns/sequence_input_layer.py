"""Sequence feature columns concatenated to one tensor, the input of a recurrent network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.column_kinds import is_sequence, sorted_columns
from estimator_core.feature_columns.state_manager import StateManager, create_state
from estimator_core.feature_columns.transformation_cache import FeatureTransformationCache
from estimator_core.spec.arguments import checked_features


def sequence_input_layer(features: Mapping[str, Any], feature_columns: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the columns' values in order of name, padded with zeros, and the sequences' lengths.

    Variables are created below the current variable scope as
    `sequence_features/<column>/embedding_weights`.

    A sparse or ragged example ends after its last value; a dense feature of a numeric column has no padding,
    one of a categorical column is padded with -1 or "". Values are float32
    `[batch_size, max_length, sum of column sizes]`, lengths int64 `[batch_size]`. Sequences of different
    lengths in two columns of an example fail when the graph runs.

    Source: `tf.keras.experimental.SequenceFeatures`, which tf.estimator's RNN models use. Ours also
    takes dense features of numeric columns.
    """
    columns = sorted_columns(feature_columns)
    for column in columns:
        if not is_sequence(column):
            raise ValueError(
                "A sequence column must have numbers for each time step: "
                "tf.feature_column.sequence_numeric_column, or an embedding_column or "
                "indicator_column over a sequence_categorical_column_*. "
                f"Received: {column!r}"
            )
    # Numeric columns read only sparse sequences.
    numeric_keys = [column.key for column in columns if not hasattr(column, "categorical_column")]
    cache = FeatureTransformationCache(
        {
            key: _with_all_values(feature) if key in numeric_keys else feature
            for key, feature in checked_features(features).items()
        }
    )
    state_manager = StateManager()
    with tf1.variable_scope("sequence_features"):
        create_state(columns, state_manager)
        values = []
        lengths = []
        for column in columns:
            with tf.name_scope(column.name):
                pair = column.get_sequence_dense_tensor(cache, state_manager)
                size = column.variable_shape.num_elements()
                shape = tf.shape(pair.dense_tensor)
                values.append(tf.reshape(pair.dense_tensor, [shape[0], shape[1], size]))
                lengths.append(tf.cast(pair.sequence_length, tf.int64))
        with tf.control_dependencies(_checks_of_equal_lengths(columns, lengths)):
            return tf.concat(values, axis=-1), tf.identity(lengths[0])


def _with_all_values(feature: Any) -> Any:
    """Returns a dense feature as a `SparseTensor` of all its values, zeros included."""
    if isinstance(feature, (tf.SparseTensor, tf.RaggedTensor)):
        return feature
    dense = tf.convert_to_tensor(feature)
    indices = tf.where(tf.ones_like(dense, tf.bool))
    return tf.SparseTensor(indices, tf.gather_nd(dense, indices), tf.shape(dense, tf.int64))


def _checks_of_equal_lengths(columns: list[Any], lengths: list[tf.Tensor]) -> list[Any]:
    """Returns ops that fail if the sequences of an example differ in length between columns."""
    return [
        tf.raw_ops.Assert(
            condition=tf.reduce_all(tf.equal(length, lengths[0])),
            data=[
                "The sequences of an example must have the same length in all columns. Received: "
                f"lengths in {columns[0].name}:",
                lengths[0],
                f"lengths in {column.name}:",
                length,
            ],
            summarize=20,
        )
        for column, length in zip(columns[1:], lengths[1:], strict=True)
    ]
