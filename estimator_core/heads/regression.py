"""RegressionHead: real-valued labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.estimator_spec import DEFAULT_SERVING_SIGNATURE
from estimator_core.export.export_outputs import ExportOutput, PredictOutput, RegressionOutput
from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.base import Head
from estimator_core.heads.checks import (
    call_loss_fn,
    check_loss_fn,
    check_weight_column,
    checked_labels,
    checked_logits,
    checked_weights,
)
from estimator_core.heads.class_predictions import wanted
from estimator_core.heads.loss_reduction import (
    LossReduction,
    check_loss_reduction,
    reduce_loss,
)
from estimator_core.keys import MetricKeys, PredictionKeys, SignatureKeys


class RegressionHead(Head):
    """Regression: squared error, on one or several numbers for each example.

    Labels have shape `[batch_size, label_dimension]`, or `[batch_size]` for one number.

    Example:
        >>> RegressionHead(label_dimension=2).logits_dimension
        2

    Args:
        label_dimension: How many numbers a label has.
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]`, `[batch_size, 1]` or `[batch_size, label_dimension]`; None weighs all the
            same.
        loss_reduction: "sum_over_batch_size" (mean over all label values of the batch) or "sum".
        loss_fn: Replaces the squared error: a function of `labels`, `logits`, and optionally
            `features` and `loss_reduction`, that returns losses `[batch_size, label_dimension]`.
        inverse_link_fn: From logits to predictions, such as `tf.exp`; None is the identity.
        name: Appended to metric keys and summary tags as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.estimator.RegressionHead`.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        inverse_link_fn: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ):
        if label_dimension < 1:
            raise ValueError(
                f"label_dimension must be at least 1. Received: label_dimension={label_dimension}"
            )
        self._label_dimension = int(label_dimension)
        self._weight_column = check_weight_column(weight_column)
        self._loss_reduction = check_loss_reduction(loss_reduction)
        self._loss_fn = check_loss_fn(loss_fn)
        self._inverse_link_fn = inverse_link_fn
        self._name = name

    @property
    def name(self) -> str | None:
        """Name of the head, or None."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """One logit for each number of a label."""
        return self._label_dimension

    @property
    def loss_reduction(self) -> str:
        """One of `LossReduction`."""
        return self._loss_reduction

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """Returns the scalar training loss; see `Head.loss`."""
        del mode
        with tf.name_scope("losses"):
            logits = checked_logits(logits, self.logits_dimension)
            labels = self._processed_labels(labels, logits)
            unweighted_loss, weights = self._loss_and_weights(labels, logits, features)
            return reduce_loss(
                unweighted_loss, weights, self._loss_reduction, regularization_losses
            )

    def _processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        labels = checked_labels(labels, logits, self._label_dimension)
        if labels.dtype == tf.string:
            raise ValueError(f"Labels of a regression must be numbers. Received: labels={labels}")
        return tf.cast(labels, tf.float32)

    def _loss_and_weights(
        self, labels: tf.Tensor, logits: tf.Tensor, features: Any
    ) -> tuple[tf.Tensor, Any]:
        if self._loss_fn is not None:
            loss = call_loss_fn(
                self._loss_fn, labels, logits, features, self._label_dimension, self._loss_reduction
            )
        else:
            loss = tf.math.squared_difference(labels, logits)
        return loss, checked_weights(features, self._weight_column, loss)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the predictions by key.

        Args:
            logits: float32 `[batch_size, label_dimension]`.
            keys: "predictions", and with an `inverse_link_fn` also "logits"; None computes all. Both
                have the shape of the logits.

        Raises:
            ValueError: An unknown key, or logits of another shape.
        """
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            if self._inverse_link_fn is None:
                found = {PredictionKeys.PREDICTIONS: logits}
            else:
                found = {
                    PredictionKeys.PREDICTIONS: self._inverse_link_fn(logits),
                    PredictionKeys.LOGITS: logits,
                }
        return {key: found[key] for key in wanted(keys, tuple(found))}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key; see `Head.metrics`."""
        names = [MetricKeys.LOSS_MEAN, MetricKeys.PREDICTION_MEAN, MetricKeys.LABEL_MEAN]
        if regularization_losses:
            names.append(MetricKeys.LOSS_REGULARIZATION)
        return {self._with_name(name): metrics_lib.mean(name) for name in names}

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """Adds a batch to the metrics and returns them; see `Head.update_metrics`."""
        del mode
        logits = checked_logits(logits, self.logits_dimension)
        labels = self._processed_labels(labels, logits)
        losses, weights = self._loss_and_weights(labels, logits, features)
        predictions = self.predictions(logits)[PredictionKeys.PREDICTIONS]
        for name, values in (
            (MetricKeys.LOSS_MEAN, losses),
            (MetricKeys.PREDICTION_MEAN, predictions),
            (MetricKeys.LABEL_MEAN, labels),
        ):
            eval_metrics[self._with_name(name)].update_state(values, sample_weight=weights)
        if regularization_losses:
            key = self._with_name(MetricKeys.LOSS_REGULARIZATION)
            eval_metrics[key].update_state(tf.add_n(list(regularization_losses)))
        return eval_metrics

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the regression (the default) and predict signatures."""
        regression = RegressionOutput(predictions[PredictionKeys.PREDICTIONS])
        return {
            DEFAULT_SERVING_SIGNATURE: regression,
            SignatureKeys.REGRESSION: regression,
            SignatureKeys.PREDICT: PredictOutput(predictions),
        }
