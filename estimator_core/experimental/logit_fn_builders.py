"""Builders of logit functions, with the arguments of `tf.estimator.experimental`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import logits
from estimator_core.spec.calling import arg_names


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Callable[[Any], Any] | str | None,
    dropout: float | None,
    input_layer_partitioner: Callable[..., Any] | None,
    batch_norm: bool,
) -> Callable[..., tf.Tensor]:
    """Returns `logit_fn(features, mode)`, which builds a network and returns its logits.

    The variables are made in the current variable scope: `hiddenlayer_<i>/kernel`, `logits/kernel`,
    `input_from_feature_columns/input_layer/<column>/embedding_weights` and so on.

    Example:
        >>> price = tf.feature_column.numeric_column("price")
        >>> logit_fn = dnn_logit_fn_builder(1, [16, 8], [price], tf.nn.relu, None, None, False)
        >>> with tf.Graph().as_default():
        ...     print(logit_fn(features={"price": tf.constant([[1.0], [2.0]])}, mode="train").shape)
        (2, 1)

    Args:
        units: Size of the last layer, the head's `logits_dimension`.
        hidden_units: Size of each hidden layer, from the input on.
        feature_columns: Dense feature columns.
        activation_fn: Activation function of the hidden layers; None applies none.
        dropout: Probability with which a hidden unit is dropped in training; None drops nothing.
        input_layer_partitioner: Partitioner of the variables of the input layer; None leaves that to the
            current variable scope.
        batch_norm: Adds batch normalization to each hidden layer if true. Its updates are in the graph's
            `UPDATE_OPS` collection, which heads run in each step.

    Raises:
        ValueError: A size or a probability is invalid.

    Source: `tf.compat.v1.estimator.experimental.dnn_logit_fn_builder`.
    """
    return logits.dnn_logit_fn_builder(
        units,
        hidden_units,
        feature_columns,
        activation_fn=activation_fn,
        dropout=dropout,
        batch_norm=batch_norm,
        scope=None,
        input_layer_partitioner=input_layer_partitioner,
    )


def linear_logit_fn_builder(
    units: int, feature_columns: Any, sparse_combiner: str = "sum"
) -> Callable[..., tf.Tensor]:
    """Returns `logit_fn(features)`, which builds a linear model and returns its logits.

    The variables are made in the current variable scope: `linear_model/<column>/weights` and
    `linear_model/bias_weights`.

    Args:
        units: Number of outputs, the head's `logits_dimension`.
        feature_columns: Categorical and dense feature columns.
        sparse_combiner: Reduction of the weights of several values in one categorical column:
            "sum", "mean" or "sqrtn".

    Source: `tf.compat.v1.estimator.experimental.linear_logit_fn_builder`.
    """
    return logits.linear_logit_fn_builder(units, feature_columns, sparse_combiner, scope=None)


def call_logit_fn(logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any) -> Any:
    """Returns the logits of `logit_fn` for `features`.

    Args:
        logit_fn: Function of `features` and any of `mode`, `params` and `config`.
        features: Features from input_fn.
        mode: One of `ModeKeys`.
        params: Hyperparameters.
        config: `RunConfig`.

    Returns:
        `Tensor`, or dict of head name to `Tensor`, `[batch_size, logits_dimension]`.

    Raises:
        ValueError: `logit_fn` returns something else.

    Source: `tf.estimator.experimental.call_logit_fn`.
    """
    names = arg_names(logit_fn)
    optional = {"mode": mode, "params": params, "config": config}
    logits = logit_fn(features=features, **{name: value for name, value in optional.items() if name in names})
    tensors = logits.values() if isinstance(logits, Mapping) else [logits]
    if not all(isinstance(tensor, (tf.Tensor, tf.SparseTensor)) for tensor in tensors):
        raise ValueError(f"logit_fn should return a Tensor or a dict of Tensors. Received: {logits!r}")
    return logits
