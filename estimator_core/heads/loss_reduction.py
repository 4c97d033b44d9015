"""Reductions of the weighted losses of a batch to one number."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class LossReduction:
    """Ways to reduce the losses of a batch, with the values of `tf.losses.Reduction`.

    The `WEIGHTED_` ones have the values of `tf.compat.v1.losses.Reduction`.

    Source: the Reductions that `tf.estimator` and `tf.compat.v1.estimator` take.
    """

    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    WEIGHTED_SUM = "weighted_sum"
    WEIGHTED_MEAN = "weighted_mean"
    WEIGHTED_SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    WEIGHTED_SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    SUMS = (SUM, WEIGHTED_SUM)
    MEANS = (
        SUM_OVER_BATCH_SIZE,
        WEIGHTED_MEAN,
        WEIGHTED_SUM_OVER_BATCH_SIZE,
        WEIGHTED_SUM_BY_NONZERO_WEIGHTS,
    )
    ALL = (*SUMS, *MEANS)


def check_loss_reduction(loss_reduction: Any) -> str:
    """Returns the reduction if it is known."""
    if loss_reduction not in LossReduction.ALL:
        raise ValueError(
            f"Invalid loss_reduction: it must be one of {LossReduction.ALL}. "
            f"Received: loss_reduction={loss_reduction!r}"
        )
    return str(loss_reduction)


def reduce_loss(
    unweighted_loss: Any, weights: Any, loss_reduction: str, regularization_losses: Any = None
) -> tf.Tensor:
    """Returns the scalar loss.

    `unweighted_loss`: `[batch_size, any]`; the result has its dtype, but is computed in float32.
    `weights`: float32 `[batch_size, 1]`, or `[batch_size, any]`, or 1.0.
    `loss_reduction`: "sum" and "weighted_sum" add the weighted losses; "sum_over_batch_size" and
    "weighted_sum_over_batch_size" divide the sum by the number of losses regardless of their weights,
    "weighted_mean" by the sum of weights, "weighted_sum_by_nonzero_weights" by the number of losses whose
    weight is not 0.
    """
    dtype = unweighted_loss.dtype
    weighted = tf.cast(unweighted_loss, tf.float32) * weights
    if loss_reduction in LossReduction.SUMS:
        loss = tf.reduce_sum(weighted)
    elif loss_reduction == LossReduction.WEIGHTED_MEAN:
        loss = _mean_over(weighted, weights)
    elif loss_reduction == LossReduction.WEIGHTED_SUM_BY_NONZERO_WEIGHTS:
        loss = _mean_over(weighted, tf.not_equal(weights, 0.0))
    else:
        count = tf.cast(tf.size(weighted), weighted.dtype)
        loss = tf.math.divide_no_nan(tf.reduce_sum(weighted), count)  # 0 for a batch without rows
    loss = tf.cast(loss, dtype)
    if regularization_losses:
        loss = tf.add_n([loss, *regularization_losses])
    return loss


def _mean_over(weighted: tf.Tensor, shares: Any) -> tf.Tensor:
    """Returns the sum divided by the sum of shares; 0 if that is 0."""
    shares = tf.cast(shares, weighted.dtype) * tf.ones_like(weighted)
    return tf.math.divide_no_nan(tf.reduce_sum(weighted), tf.reduce_sum(shares))
