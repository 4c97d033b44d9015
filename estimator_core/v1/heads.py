"""The heads of `tf.compat.v1.estimator`'s classifiers and regressors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.heads import BinaryClassHead, Head, MultiClassHead, RegressionHead
from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.base import write_summary
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction, reduce_loss
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.keys import MetricKeys
from estimator_core.spec.mode_keys import ModeKeys


class _CannedHead(WeightedHead):
    """Trains in the head's own name scope, and writes the mean loss as well if the loss is a sum.

    The name scope is the head's name, or "head". The mean per example is the summary "average_loss",
    or "average_loss/<name>".
    """

    @property
    def training_scope(self) -> str:
        """Name scope of the training, within that of the current variable scope."""
        outer = tf1.get_variable_scope().name
        name = self.name or "head"
        # A name scope that ends in a slash is absolute.
        return f"{outer}/{name}/" if outer else f"{name}/"

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        *args: Any,
        **others: Any,
    ) -> EstimatorSpec:
        """Returns the `EstimatorSpec` of a model that ends in this head; see `Head`."""
        spec = super().create_estimator_spec(
            features,
            mode,
            logits,
            labels,
            optimizer,
            trainable_variables,
            train_op_fn,
            *args,
            **others,
        )
        if mode == ModeKeys.TRAIN and self.loss_reduction in LossReduction.SUMS:
            with tf.name_scope("losses"):
                labels = self.processed_labels(labels, logits)
                losses = self.unreduced_losses(labels, logits, features)
                weights = self.example_weights(features, losses)
                mean = reduce_loss(losses, weights, LossReduction.WEIGHTED_MEAN)
            write_summary(self._with_name(MetricKeys.LOSS_MEAN), mean)
        return spec


class CannedBinaryClassHead(_CannedHead, BinaryClassHead):
    """Sums the area under the precision-recall curve by trapezoids; the baseline without labels is 1."""

    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name; see `WeightedHead.own_metrics`."""
        return {
            **super().own_metrics(),
            MetricKeys.AUC_PR: metrics_lib.auc(
                MetricKeys.AUC_PR, curve="PR", summation_method="trapezoidal"
            ),
            MetricKeys.ACCURACY_BASELINE: metrics_lib.GraphMetric(_accuracy_baseline),
        }


def _accuracy_baseline(labels: Any, weights: Any) -> tuple[Any, Any]:
    value, update_op = tf1.metrics.mean(
        tf.cast(labels, tf.float32), weights, name=MetricKeys.ACCURACY_BASELINE
    )
    return tf.maximum(value, 1.0 - value), tf.maximum(update_op, 1.0 - update_op)


class CannedMultiClassHead(_CannedHead, MultiClassHead):
    """A `MultiClassHead` that differs only in training."""


class CannedRegressionHead(_CannedHead, RegressionHead):
    """A `RegressionHead` that differs only in training."""


def classifier_head(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Sequence[str] | None,
    loss_reduction: str,
) -> Head:
    """Returns the head of a classifier.

    Raises:
        TypeError: `label_vocabulary` is not a list.
        ValueError: There are fewer than two classes, or the loss reduction is unknown.
    """
    if not isinstance(label_vocabulary, (list, tuple, type(None))):
        raise TypeError(f"label_vocabulary should be a list. Received: {label_vocabulary!r}")
    return binary_or_multi_class_head(
        n_classes,
        weight_column,
        label_vocabulary,
        loss_reduction,
        kinds=(CannedBinaryClassHead, CannedMultiClassHead),
    )


def regressor_head(label_dimension: int, weight_column: Any, loss_reduction: str) -> Head:
    """Returns the head of a regressor.

    Raises:
        ValueError: `label_dimension` is below 1, or the loss reduction is unknown.
    """
    return CannedRegressionHead(label_dimension, weight_column, loss_reduction)
