"""The logits of a fully connected network over feature columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.rows import batch_weight

_BATCH_NORM_MOMENTUM = 0.999
_BATCH_NORM_EPSILON = 0.001


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Callable[[Any], Any] | str | None = tf.nn.relu,
    dropout: float | None = None,
    batch_norm: bool = False,
    scope: str | None = "dnn",
    input_layer_partitioner: Callable[..., Any] | None = None,
) -> Callable[..., tf.Tensor]:
    """Returns `logit_fn(features, mode)`, which builds the network and returns its logits.

    The variables are `dnn/hiddenlayer_<i>/kernel`, `.../bias`, `dnn/logits/kernel`, `.../bias`,
    `dnn/hiddenlayer_<i>/batchnorm_<i>/...`, and for embeddings
    `dnn/input_from_feature_columns/input_layer/<column>/embedding_weights`.

    `scope`: variable scope of the network; None builds it in the current one.
    See `experimental.dnn_logit_fn_builder` for the other arguments.
    """
    if not isinstance(hidden_units, Iterable) or isinstance(hidden_units, str):
        raise ValueError(
            f"hidden_units must be a list of layer sizes. Received: hidden_units={hidden_units!r}"
        )
    sizes = [_whole_number(size) for size in (units, *hidden_units)]  # programs split them from a flag
    if min(sizes) < 1:
        raise ValueError(
            "units and hidden_units must be positive integers. "
            f"Received: units={units!r}, hidden_units={list(hidden_units)!r}"
        )
    units, hidden_units = sizes[0], sizes[1:]
    if dropout is not None and not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout must be in [0, 1). Received: dropout={dropout}")
    activation = _activation(activation_fn)

    def logit_fn(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        training = mode == ModeKeys.TRAIN
        with tf1.variable_scope(scope) if scope else contextlib.nullcontext():
            with tf1.variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
                net = input_layer(features, feature_columns, for_training=training)
            layers = []
            for index, size in enumerate(hidden_units):
                name = f"hiddenlayer_{index}"
                with tf1.variable_scope(name):
                    net = activation(dense(net, size))
                    if training and dropout:
                        net = tf.nn.dropout(net, rate=dropout)
                    if batch_norm:
                        with tf1.variable_scope(f"batchnorm_{index}"):
                            net = batch_normalization(net, training)
                layers.append((net, name))
            with tf1.variable_scope("logits"):
                logits = dense(net, units)
            layers.append((logits, "logits"))
        for value, name in layers if mode != ModeKeys.PREDICT else ():  # which writes no summaries
            add_activation_summary(value, f"dnn/{name}")
        return logits

    return logit_fn


def _whole_number(size: Any) -> int:
    """Returns the number that a size stands for, such as 8.0 or "+8"; 0 if it is none."""
    try:
        return int(size) if isinstance(size, str) or int(size) == size else 0
    except (TypeError, ValueError):
        return 0


def _activation(activation_fn: Any) -> Callable[[Any], Any]:
    if activation_fn is None:
        return lambda value: value
    if isinstance(activation_fn, str):
        return tf.keras.activations.get(activation_fn)
    if not callable(activation_fn):
        raise ValueError(f"activation_fn must be a function, a name or None. Received: {activation_fn!r}")
    return activation_fn


def dense(value: tf.Tensor, units: int) -> tf.Tensor:
    """Returns value times `kernel` plus `bias`, two variables of the current variable scope."""
    kernel = tf1.get_variable(
        "kernel",
        [value.shape[-1], units],
        tf.float32,
        initializer=tf1.initializers.glorot_uniform(),
        use_resource=True,
    )
    bias = tf1.get_variable(
        "bias", [units], tf.float32, initializer=tf1.initializers.zeros(), use_resource=True
    )
    return tf.nn.bias_add(tf.matmul(value, tf.convert_to_tensor(kernel)), bias)


def batch_normalization(value: tf.Tensor, training: bool) -> tf.Tensor:
    """Returns the normalized value; the variables are made in the current variable scope.

    `value`: float32 `[batch_size, size]`.
    `training`: True normalizes by the batch and moves the averages, by ops in the `UPDATE_OPS` collection;
    False normalizes by the moving averages.

    Source: Ioffe and Szegedy 2015, Batch Normalization; momentum 0.999 as in tf.estimator.
    """
    size = value.shape[-1:]

    def variable(name: str, initial: float, trainable: bool) -> Any:
        replicated: dict[str, Any] = (
            {}
            if trainable
            else {
                "synchronization": tf.VariableSynchronization.ON_READ,
                "aggregation": tf.VariableAggregation.MEAN,
            }
        )
        return tf1.get_variable(
            name,
            size,
            tf.float32,
            initializer=tf1.initializers.constant(initial),
            trainable=trainable,
            use_resource=True,
            **replicated,
        )

    gamma = tf.convert_to_tensor(variable("gamma", 1.0, trainable=True))
    beta = tf.convert_to_tensor(variable("beta", 0.0, trainable=True))
    with tf1.variable_scope(tf1.get_variable_scope()) as whole:
        whole.set_partitioner(None)  # a partitioned variable can't be updated as a whole
        moving_mean = variable("moving_mean", 0.0, trainable=False)
        moving_variance = variable("moving_variance", 1.0, trainable=False)
    if not training:
        return tf.nn.batch_normalization(
            value, moving_mean, moving_variance, beta, gamma, _BATCH_NORM_EPSILON
        )
    mean, variance = tf.nn.moments(value, axes=[0])
    weight = batch_weight(value)
    if weight is not None:  # of a batch without rows, they are NaN
        mean, variance = (tf.math.multiply_no_nan(statistic, weight) for statistic in (mean, variance))
    for average, current in ((moving_mean, mean), (moving_variance, variance)):
        change = (average - current) * (1.0 - _BATCH_NORM_MOMENTUM)
        if weight is not None:
            change *= weight
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, average.assign_sub(change, read_value=False))
    return tf.nn.batch_normalization(value, mean, variance, beta, gamma, _BATCH_NORM_EPSILON)


def add_activation_summary(value: tf.Tensor, tag: str) -> None:
    """Writes the share of zeros as "<tag>/fraction_of_zero_values", a histogram as "<tag>/activation"."""
    tf1.summary.scalar(f"{tag}/fraction_of_zero_values", tf.math.zero_fraction(value))
    tf1.summary.histogram(f"{tag}/activation", value)


def with_activation_summary(logit_fn: Callable[..., tf.Tensor], tag: str) -> Callable[..., Any]:
    def logit_fn_with_summary(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        logits = logit_fn(features, mode)
        add_activation_summary(logits, tag)
        return logits

    return logit_fn_with_summary
