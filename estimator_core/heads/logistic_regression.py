"""LogisticRegressionHead: labels are probabilities."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core.heads.assertions import assertion
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.regression import RegressionHead


class LogisticRegressionHead(RegressionHead):
    """Logistic regression: sigmoid cross entropy, on labels anywhere in [0, 1].

    It takes the same numbers as `BinaryClassHead`, but reports and exports a regression: the
    probability, no class. Labels have shape `[batch_size]` or `[batch_size, 1]`.

    Example:
        >>> head = LogisticRegressionHead()
        >>> with tf.Graph().as_default():
        ...     print(sorted(head.predictions(tf.constant([[0.5], [-1.0]]))))
        ['logits', 'predictions']

    Args:
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]` or `[batch_size, 1]`; None weighs all examples the same.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        name: Suffix of metric keys and summary tags, as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has an invalid value.

    Source: `tf.estimator.LogisticRegressionHead`.
    """

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ):
        def loss_fn(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
            in_range = tf.reduce_all((labels >= 0.0) & (labels <= 1.0))
            message = "Labels must be in range [0, 1]; RegressionHead takes any. Received labels:"
            with tf.control_dependencies(assertion(in_range, message, labels)):
                return tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.identity(labels), logits=logits)

        super().__init__(
            label_dimension=1,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
            loss_fn=loss_fn,
            inverse_link_fn=tf.sigmoid,
            name=name,
        )
