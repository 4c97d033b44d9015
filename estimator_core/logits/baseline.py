"""The logits of a model that ignores all features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1


def baseline_logit_fn_builder(units: int) -> Callable[..., tf.Tensor]:
    """Returns `logit_fn(features, mode)`, which returns the same `units` logits for all examples.

    The variable is `baseline/bias`, `[units]`, initially 0. Features only give the number of
    examples.

    Source: the models of `tf.estimator.BaselineEstimator`. Ours also trains on batches of unknown static
    size and on sparse features, and predicts to the end of the input with batches of a known
    size.
    """

    def logit_fn(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        del mode  # the same in all modes
        with tf1.variable_scope("baseline"):
            bias = tf1.get_variable("bias", [units], initializer=tf1.initializers.zeros(), use_resource=True)
        batch_size = _batch_size(features)
        return tf.ones([batch_size, 1]) * tf.convert_to_tensor(bias)

    return logit_fn


def _batch_size(features: Mapping[str, Any]) -> tf.Tensor:
    """Returns the number of examples, checked to be the same in all features when the graph runs."""
    if not features:
        raise ValueError(
            "A Baseline model needs at least one feature, to know the number of examples. "
            f"Received: features={features}"
        )
    tensors = [
        feature if isinstance(feature, (tf.SparseTensor, tf.RaggedTensor)) else tf.convert_to_tensor(feature)
        for feature in features.values()
    ]
    sizes = tf.stack([_first_dimension(tensor) for tensor in tensors])
    message = f"All features must have the same batch size. Received, of {list(features)}:"
    check = tf.raw_ops.Assert(
        condition=tf.reduce_all(tf.equal(sizes, sizes[0])), data=[message, sizes], summarize=100
    )
    # Read the features even if the batch size is known: otherwise predictions would never end.
    inputs = tf.nest.flatten(tensors, expand_composites=True)
    with tf.control_dependencies([check, *inputs]):
        return tf.identity(sizes[0])


def _first_dimension(feature: Any) -> tf.Tensor:
    if isinstance(feature, tf.SparseTensor):
        return tf.cast(feature.dense_shape[0], tf.int32)
    if isinstance(feature, tf.RaggedTensor):
        return tf.cast(feature.nrows(), tf.int32)
    return tf.shape(feature)[0]
