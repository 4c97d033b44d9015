"""Summaries of a layer's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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


def with_activation_summary(logit_fn: Callable[..., tf.Tensor], tag: str) -> Callable[..., Any]:
    """Returns `logit_fn` with summaries of its logits.

    Args:
        logit_fn: Function `logit_fn(features, mode)` that returns logits.
        tag: See `add_activation_summary`.
    """

    def logit_fn_with_summary(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        logits = logit_fn(features, mode)
        add_activation_summary(logits, tag)
        return logits

    return logit_fn_with_summary
