"""The evaluation metrics of heads.

In a graph, a metric is a value tensor and an op that adds one batch to it; in eager mode, it is a Keras
metric.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.heads import keras_metrics
from estimator_core.heads.curve_area import curve_area, is_replaced


class Metric(Protocol):
    """The methods that `GraphMetric` and Keras metrics share."""

    def update_state(self, *values: Any, sample_weight: Any = None) -> Any:
        """Adds a batch to the metric; in a graph, returns the op that does."""

    def result(self) -> Any:
        """Returns the metric over all batches added so far, a scalar `Tensor`."""


class GraphMetric:
    """A metric with the methods of a Keras metric, made of the ops of a `tf.compat.v1.metrics` function.

    `metric_fn`: function of the arguments of `update_state`, with `weights`, that returns `(value,
    update_op)`.
    """

    def __init__(self, metric_fn: Callable[..., tuple[Any, Any]]):
        self._metric_fn = metric_fn
        self._pair: tuple[Any, Any] | None = None

    def update_state(self, *values: Any, sample_weight: Any = None) -> Any:
        """Returns the op that adds a batch to the metric."""
        self._pair = self._metric_fn(*values, weights=sample_weight)
        return self._pair[1]

    def result(self) -> Any:
        """Returns the metric over all batches added so far, a scalar `Tensor`."""
        return self.as_pair()[0]

    def as_pair(self) -> tuple[Any, Any]:
        """Returns `(value, update_op)`, the form in `EstimatorSpec.eval_metric_ops`."""
        if self._pair is None:
            raise ValueError("The metric has no value yet: call update_state with a batch first.")
        return self._pair


def update(metric: Metric, *values: Any, sample_weight: Any = None) -> None:
    """Adds a batch to a metric of this module, or to any Keras metric."""
    if isinstance(metric, GraphMetric):
        metric.update_state(*values, sample_weight=sample_weight)
    else:
        keras_metrics.update(metric, *values, sample_weight=sample_weight)


def mean(name: str) -> Metric:
    """Returns the weighted mean of values."""
    if tf.executing_eagerly():
        return keras_metrics.mean(name)
    return GraphMetric(
        lambda values, weights: tf1.metrics.mean(tf.cast(values, tf.float32), weights, name=name)
    )


def accuracy(name: str, threshold: float | None = None) -> Metric:
    """Returns the weighted share of labels that equal the predictions."""
    if tf.executing_eagerly():
        return keras_metrics.accuracy(name, threshold)

    def metric_fn(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
        # Fractional labels equal no class; a cast would truncate them to one.
        if not labels.dtype.is_floating:
            labels = tf.cast(labels, predictions.dtype)
        return tf1.metrics.accuracy(labels, predictions, weights, name=name)

    return GraphMetric(metric_fn)


def accuracy_baseline(name: str) -> Metric:
    """Returns the accuracy of always predicting the more frequent of the labels 0 and 1; 0 without labels."""
    if tf.executing_eagerly():
        return keras_metrics.accuracy_baseline(name)

    def metric_fn(labels: Any, weights: Any) -> tuple[Any, Any]:
        labels = tf.cast(labels, tf.float32)
        ones = tf1.metrics.mean(labels, weights, name=name)
        zeros = tf1.metrics.mean(1.0 - labels, weights, name=f"{name}/zeros")
        return tf.maximum(ones[0], zeros[0]), tf.maximum(ones[1], zeros[1])

    return GraphMetric(metric_fn)


def precision(name: str, threshold: float | None = None) -> Metric:
    """Returns true positives / predicted positives, of labels and predictions in {0, 1}."""
    if tf.executing_eagerly():
        return keras_metrics.precision(name, threshold)
    return GraphMetric(
        lambda labels, predictions, weights: tf1.metrics.precision(labels, predictions, weights, name=name)
    )


def recall(name: str, threshold: float | None = None) -> Metric:
    """Returns true positives / positive labels, of labels and predictions in {0, 1}."""
    if tf.executing_eagerly():
        return keras_metrics.recall(name, threshold)
    return GraphMetric(
        lambda labels, predictions, weights: tf1.metrics.recall(labels, predictions, weights, name=name)
    )


def auc(name: str, curve: str = "ROC", summation_method: str | None = None) -> Metric:
    """Returns the area under the ROC or precision-recall curve, over 200 thresholds.

    `summation_method`: "trapezoidal" or "careful_interpolation"; None means "trapezoidal" for "ROC" and
    "careful_interpolation" for "PR". Eager mode has only these.
    """
    default = "trapezoidal" if curve == "ROC" else "careful_interpolation"
    if summation_method is None:
        summation_method = default
    if tf.executing_eagerly():
        if summation_method != default:
            raise ValueError(
                f"In eager mode, summation_method must be {default!r} for the curve {curve!r}. "
                f"Received: summation_method={summation_method!r}"
            )
        return keras_metrics.auc(name, curve)

    def metric_fn(labels: Any, predictions: Any, weights: Any) -> tuple[Any, Any]:
        # The value of TensorFlow's metric sums over the replicas.
        if current_execution().is_replicated or is_replaced():
            return tf1.without_warning(tf1.metrics.auc)(
                labels,
                predictions,
                weights,
                num_thresholds=200,
                curve=curve,
                summation_method=summation_method,
                name=name,
            )
        return curve_area(labels, predictions, weights, curve, str(summation_method), name)

    return GraphMetric(metric_fn)
