"""Summaries of a layer's output."""

from __future__ import annotations

import tensorflow as tf

from estimator_core import tf1


def add_activation_summary(value: tf.Tensor, tag: str) -> None:
    """Writes the share of zeros as "<tag>/fraction_of_zero_values", a histogram as "<tag>/activation".

    Args:
        value: Output of a layer, `[batch_size, any]`.
        tag: Name of the layer.

    Source: tf.estimator's DNN models.
    """
    tf1.summary.scalar(f"{tag}/fraction_of_zero_values", tf.math.zero_fraction(value))
    tf1.summary.histogram(f"{tag}/activation", value)
