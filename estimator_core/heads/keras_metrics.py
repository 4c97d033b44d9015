"""Evaluation metrics in eager mode: Keras metrics, of the Keras that is `tf.keras`."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


def mean(name: str) -> Any:
    """Returns the weighted mean of values."""
    return tf.keras.metrics.Mean(name=name)


def accuracy(name: str, threshold: float | None = None) -> Any:
    """Returns the weighted share of labels that equal the predictions."""
    if threshold is None:
        return tf.keras.metrics.Accuracy(name=name)
    return tf.keras.metrics.BinaryAccuracy(name=name, threshold=threshold)


def accuracy_baseline(name: str) -> Any:
    """Returns the accuracy of always predicting the more frequent of the labels 0 and 1."""
    return _accuracy_baseline_class(tf.keras.metrics.Mean)(name=name)


@functools.cache
def _accuracy_baseline_class(mean_class: Any) -> Any:
    # Defined here to import Keras only when it is used.
    class AccuracyBaseline(mean_class):
        def result(self) -> tf.Tensor:
            positive, count = tf.convert_to_tensor(self.total), tf.convert_to_tensor(self.count)
            return tf.math.divide_no_nan(tf.maximum(positive, count - positive), count)

    return AccuracyBaseline


def precision(name: str, threshold: float | None = None) -> Any:
    """Returns true positives / predicted positives; predictions are positive above the threshold."""
    return tf.keras.metrics.Precision(name=name, thresholds=threshold)


def recall(name: str, threshold: float | None = None) -> Any:
    """Returns true positives / positive labels; predictions are positive above the threshold."""
    return tf.keras.metrics.Recall(name=name, thresholds=threshold)


def auc(name: str, curve: str) -> Any:
    """Returns the area under the "ROC" or the "PR" curve, over 200 thresholds."""
    return tf.keras.metrics.AUC(name=name, curve=curve)


def update(metric: Any, *values: Any, sample_weight: Any = None) -> None:
    """Adds a batch to a Keras metric."""
    flat = [tf.reshape(tf.cast(value, tf.float32), [-1]) for value in values]
    if sample_weight is not None:
        # Keras versions differ in the broadcasting of weights of another shape, but not in the mean of
        # one number for each value.
        weights = tf.broadcast_to(tf.cast(sample_weight, tf.float32), tf.shape(values[-1]))
        sample_weight = tf.reshape(weights, [-1])
    metric.update_state(*flat, sample_weight=sample_weight)
