"""PoissonRegressionHead: labels are counts."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core.heads.assertions import assertion
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.regression import RegressionHead


class PoissonRegressionHead(RegressionHead):
    """Poisson regression: labels are counts, logits the logarithms of their expected values.

    The loss of an example is `exp(logit) - label * logit`, the negative log likelihood without a
    term that does not depend on the model. Labels are at least 0 and have shape
    `[batch_size, label_dimension]`, or `[batch_size]` for one number.

    Example:
        >>> PoissonRegressionHead(label_dimension=2).logits_dimension
        2

    Args:
        label_dimension: Number of values in a label.
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]`, `[batch_size, 1]` or `[batch_size, label_dimension]`; None weighs all the
            same.
        loss_reduction: "sum_over_batch_size" (mean over all label values of the batch) or "sum".
        compute_full_loss: Adds the missing term, log(label!), if true, in Stirling's
            approximation for labels above 1.
        name: Suffix of metric keys and summary tags, as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has an invalid value.

    Source: `tf.estimator.PoissonRegressionHead`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        compute_full_loss: bool = True,
        name: str | None = None,
    ):
        def loss_fn(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
            message = "Labels of a Poisson regression are counts, 0 or more. Received labels:"
            with tf.control_dependencies(assertion(tf.reduce_all(labels >= 0.0), message, labels)):
                return tf.nn.log_poisson_loss(
                    targets=tf.identity(labels), log_input=logits, compute_full_loss=compute_full_loss
                )

        super().__init__(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            loss_fn=loss_fn,
            inverse_link_fn=tf.exp,
            name=name,
        )
