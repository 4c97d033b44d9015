"""RegressionHead: labels are real numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.checks import checked_labels, checked_logits
from estimator_core.heads.class_predictions import wanted
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE
from estimator_core.spec.export_outputs import ExportOutput, PredictOutput, RegressionOutput
from estimator_core.spec.keys import MetricKeys, PredictionKeys, SignatureKeys


class RegressionHead(WeightedHead):
    """Regression: squared error, on one or several numbers for each example.

    Labels have shape `[batch_size, label_dimension]`, or `[batch_size]` for one number.

    Example:
        >>> RegressionHead(label_dimension=2).logits_dimension
        2

    Args:
        label_dimension: Number of values in a label.
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]`, `[batch_size, 1]` or `[batch_size, label_dimension]`; None weighs all the
            same.
        loss_reduction: "sum_over_batch_size" (mean over all label values of the batch) or "sum".
        loss_fn: Function that replaces the squared error, of `labels`, `logits`, and optionally
            `features` and `loss_reduction`, that returns losses `[batch_size, label_dimension]`.
        inverse_link_fn: Function from logits to predictions, such as `tf.exp`; None is the identity.
        name: Suffix of metric keys and summary tags, as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has an invalid value.

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
        super().__init__(weight_column, loss_reduction, loss_fn, name, loss_dimension=int(label_dimension))
        self._label_dimension = int(label_dimension)
        self._inverse_link_fn = inverse_link_fn

    @property
    def logits_dimension(self) -> int:
        """One logit for each number of a label."""
        return self._label_dimension

    def processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns labels as float32 `[batch_size, label_dimension]`."""
        labels = checked_labels(labels, logits, self._label_dimension)
        if labels.dtype == tf.string:
            raise ValueError(f"Labels of a regression must be numbers. Received: labels={labels}")
        return tf.cast(labels, tf.float32)

    def own_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the squared errors, `[batch_size, label_dimension]`."""
        return tf.math.squared_difference(labels, logits)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the predictions by key.

        Args:
            logits: float32 `[batch_size, label_dimension]`.
            keys: "predictions", and with an `inverse_link_fn` also "logits", each of the shape of the
                logits; None computes all.

        Raises:
            ValueError: An unknown key, or logits of another shape.
        """
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            if self._inverse_link_fn is None:
                predictions = {PredictionKeys.PREDICTIONS: logits}
            else:
                predictions = {
                    PredictionKeys.PREDICTIONS: self._inverse_link_fn(logits),
                    PredictionKeys.LOGITS: logits,
                }
        return {key: predictions[key] for key in wanted(keys, tuple(predictions))}

    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name; see `WeightedHead.own_metrics`."""
        names = (MetricKeys.PREDICTION_MEAN, MetricKeys.LABEL_MEAN)
        return {name: metrics_lib.mean(name) for name in names}

    def metric_values(self, labels: tf.Tensor, logits: tf.Tensor) -> Iterator[tuple[Any, ...]]:
        """Yields (name of a metric, *values of a batch); see `WeightedHead.metric_values`."""
        yield MetricKeys.PREDICTION_MEAN, self.predictions(logits)[PredictionKeys.PREDICTIONS]
        yield MetricKeys.LABEL_MEAN, labels

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the regression (the default) and predict signatures."""
        regression = RegressionOutput(predictions[PredictionKeys.PREDICTIONS])
        return {
            DEFAULT_SERVING_SIGNATURE: regression,
            SignatureKeys.REGRESSION: regression,
            SignatureKeys.PREDICT: PredictOutput(predictions),
        }
