"""The logits of a linear model over feature columns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.linear_model import linear_model
from estimator_core.spec.mode_keys import ModeKeys


def linear_logit_fn_builder(
    units: int, feature_columns: Any, sparse_combiner: str = "sum", scope: str | None = "linear"
) -> Callable[..., tf.Tensor]:
    """Returns `logit_fn(features, mode)`, which builds the linear model and returns its logits.

    The variables are `linear/linear_model/<column>/weights` and `linear/linear_model/bias_weights`.

    `scope`: variable scope of the model; None builds it in the current one.
    """

    def logit_fn(features: Mapping[str, Any], mode: str | None = None) -> tf.Tensor:
        training = mode in (None, ModeKeys.TRAIN)
        with tf1.variable_scope(scope) if scope else contextlib.nullcontext():
            model = linear_model(features, feature_columns, units, sparse_combiner, training)
        if units > 1:
            tf1.summary.histogram("bias", tf.convert_to_tensor(model.bias))
        else:
            tf1.summary.scalar("bias", tf.convert_to_tensor(model.bias)[0])
        weights = [tf.convert_to_tensor(weight) for weight in model.weights]
        zeros = tf.add_n([tf.reduce_sum(tf.cast(tf.equal(w, 0.0), tf.float32)) for w in weights])
        fraction = zeros / tf.cast(tf.add_n([tf.size(weight) for weight in weights]), tf.float32)
        tf1.summary.scalar("fraction_of_zero_weights", fraction)
        return model.logits

    return logit_fn
