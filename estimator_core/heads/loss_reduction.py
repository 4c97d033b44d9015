"""How the weighted losses of a batch become one number."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class LossReduction:
    """Ways to reduce the losses of a batch; the values are those of `tf.losses.Reduction`.

    Source: `tf.losses.Reduction` as tf.estimator takes it.
    """

    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"

    ALL = (SUM, SUM_OVER_BATCH_SIZE)


def check_loss_reduction(loss_reduction: Any) -> str:
    """Returns the reduction when it is a known one.

    Raises:
        ValueError: Unknown, or one that does not give a scalar.
    """
    if loss_reduction not in LossReduction.ALL:
        raise ValueError(
            f"Invalid loss_reduction: it must be one of {LossReduction.ALL}. "
            f"Received: loss_reduction={loss_reduction!r}"
        )
    return str(loss_reduction)


def reduce_loss(
    unweighted_loss: Any,
    weights: Any,
    loss_reduction: str,
    regularization_losses: Any = None,
) -> tf.Tensor:
    """Returns the scalar loss.

    Args:
        unweighted_loss: float32 `[batch_size, any]`.
        weights: float32 `[batch_size, 1]`, or `[batch_size, any]`, or 1.0.
        loss_reduction: "sum" adds the weighted losses; "sum_over_batch_size" divides that by the
            number of losses, whatever their weights.
        regularization_losses: Scalars to add, or None.
    """
    weighted = unweighted_loss * weights
    reduce = tf.reduce_sum if loss_reduction == LossReduction.SUM else tf.reduce_mean
    loss = reduce(weighted)
    if regularization_losses:
        loss = tf.add_n([loss, *regularization_losses])
    return loss
