"""Dense feature columns concatenated to one tensor, the input of a neural network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.column_kinds import is_categorical, is_dense, sorted_columns
from estimator_core.feature_columns.single_ids import embedded_single_ids
from estimator_core.feature_columns.state_manager import StateManager, create_state
from estimator_core.feature_columns.transformation_cache import FeatureTransformationCache


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    trainable: bool = True,
    scope: str = "input_layer",
    for_training: bool = True,
) -> tf.Tensor:
    """Returns the dense columns' values in order of name, float32 `[batch_size, sum of column sizes]`.

    Variables are created below the current variable scope as
    `<scope>/<column>/embedding_weights`.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> with tf.Graph().as_default():
        ...     print(input_layer({"price": tf.constant([[1.0], [5.0]])}, [price]).shape)
        (2, 1)

    Args:
        features: Dict of feature name to `Tensor` or `SparseTensor`, `[batch_size, ...]`.
        feature_columns: Dense columns: numeric, bucketized, indicator, embedding, shared embedding.
        trainable: False creates embedding tables that are not trained.
        scope: Name of the variable scope.
        for_training: False uses fewer operations, whose gradients may have a row for each example.

    Raises:
        ValueError: A column is not dense, or a feature is missing.

    Source: the input layer of tf.estimator's DNN models (`tf.compat.v1.feature_column.input_layer`).
    """
    columns = sorted_columns(feature_columns)
    for column in columns:
        _check_dense(column)
    with tf1.variable_scope(scope):
        cache = FeatureTransformationCache(features)
        state_manager = StateManager(trainable)
        create_state(columns, state_manager)
        outputs = []
        for column in columns:
            with tf.name_scope(column.name):
                output = embedded_single_ids(column, cache, state_manager, for_training)
                if output is None:
                    output = column.get_dense_tensor(cache, state_manager)
                    num_elements = column.variable_shape.num_elements()
                    # Not `!=`: an unknown dimension of TensorFlow 1 is neither equal nor unequal to 4.
                    if not (output.shape.rank == 2 and output.shape[1] == num_elements):
                        output = tf.reshape(output, [tf.shape(output)[0], num_elements])
                outputs.append(output)
        return tf.concat(outputs, axis=1) if len(outputs) > 1 else outputs[0]


def _check_dense(column: Any) -> None:
    if is_dense(column):
        return
    if is_categorical(column):
        raise ValueError(
            "A categorical column gives ids, not numbers: wrap it with "
            "tf.feature_column.embedding_column or tf.feature_column.indicator_column. "
            f"Received: {column!r}"
        )
    raise ValueError(
        "A sequence column has a value for each time step, but each example needs one: use "
        f"tf.feature_column.numeric_column, or an RNN model for sequences. Received: {column!r}"
    )
