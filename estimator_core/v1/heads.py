"""The heads of `tf.compat.v1.estimator`'s classifiers and regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimator_core.heads import BinaryClassHead, Head, RegressionHead
from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import check_loss_reduction
from estimator_core.spec.keys import MetricKeys
from estimator_core.v1.compose import CannedHead


class _BinaryClassHead(BinaryClassHead):
    """Sums the area under the precision-recall curve by the trapezoidal rule."""

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key; see `Head.metrics`."""
        return {
            **super().metrics(regularization_losses),
            MetricKeys.AUC_PR: metrics_lib.auc(
                MetricKeys.AUC_PR, curve="PR", summation_method="trapezoidal"
            ),
        }


def classifier_head(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Sequence[str] | None,
    loss_reduction: str,
) -> CannedHead:
    """Returns the head of a classifier.

    Raises:
        ValueError: Fewer than two classes, or an unknown loss reduction.
    """

    def make(reduction: str) -> Head:
        if n_classes == 2:
            return _BinaryClassHead(
                weight_column, label_vocabulary=label_vocabulary, loss_reduction=reduction
            )
        return binary_or_multi_class_head(n_classes, weight_column, label_vocabulary, reduction)

    make(loss_reduction)  # raises now, not when training begins
    return CannedHead(make, check_loss_reduction(loss_reduction))


def regressor_head(label_dimension: int, weight_column: Any, loss_reduction: str) -> CannedHead:
    """Returns the head of a regressor.

    Raises:
        ValueError: A label without numbers, or an unknown loss reduction.
    """

    def make(reduction: str) -> Head:
        return RegressionHead(label_dimension, weight_column, reduction)

    make(loss_reduction)  # raises now, not when training begins
    return CannedHead(make, check_loss_reduction(loss_reduction))
