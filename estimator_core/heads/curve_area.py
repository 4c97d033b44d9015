"""The area under a ROC or precision-recall curve, with one pass over the examples of a batch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1

ROC, PR = "ROC", "PR"
TRAPEZOIDAL, CAREFUL_INTERPOLATION = "trapezoidal", "careful_interpolation"
_THRESHOLDS = 200
_EPSILON = 1e-6  # avoids division by 0
_BELOW_0 = 1e-7  # puts the first threshold below all predictions, and the last above


def curve_area(
    labels: Any, predictions: Any, weights: Any, curve: str, summation_method: str, name: str
) -> tuple[Any, Any]:
    """Returns (value, update_op) of the area under the curve of 200 thresholds.

    `tf.compat.v1.metrics.auc` compares each prediction with each threshold, which makes it by far the
    slowest metric of a classifier. This function looks up each prediction among the thresholds. The counts
    are the same, up to the rounding of float32 sums for weights that are not whole numbers.

    `labels`: any numeric or boolean type, of the shape of the predictions; all but 0 are positive.
    `weights`: weights that broadcast to the predictions; None weighs all the same.
    `summation_method`: `TRAPEZOIDAL`, or for `PR` also `CAREFUL_INTERPOLATION`.

    Source: Davis and Goadrich 2006, The relationship between precision-recall and ROC curves.
    """
    with tf1.variable_scope(name):
        counts, update = _confusion_counts(labels, predictions, weights)
        value = counts.area(curve, summation_method)
        with tf.control_dependencies([update]):
            return value, counts.area(curve, summation_method)


def is_replaced() -> bool:
    """Returns whether the program has replaced TensorFlow's own counts for a curve.

    AdaNet does so to evaluate models whose predictions are NaN, which TensorFlow's function refuses,
    as this one does.
    """
    module = sys.modules[tf1.metrics.auc.__module__]
    counts = getattr(module, "_confusion_matrix_at_thresholds", None)
    return counts is not None and counts.__module__ != module.__name__


_COUNTED = "_estimator_core_counted"  # an attribute of the graph, deleted with it


def _confusion_counts(labels: Any, predictions: Any, weights: Any) -> tuple[_Counts, tf.Operation]:
    """Returns the counts and the op that adds a batch; curves of the same tensors share them."""
    graph = tf1.get_default_graph()
    counted = getattr(graph, _COUNTED, {})
    setattr(graph, _COUNTED, counted)
    taken = (labels, predictions, weights)
    key = tuple(map(id, taken))
    if key not in counted:
        counts = _Counts()
        counted[key] = (counts, counts.add(labels, predictions, weights), taken)
    counts, update, _ = counted[key]
    return counts, update


class _Counts:
    """The weights of negative and positive examples, by the number of thresholds below their prediction.

    An example is predicted as positive at the thresholds below its prediction.
    """

    def __init__(self) -> None:
        inner = np.arange(1, _THRESHOLDS - 1, dtype=np.float64) / (_THRESHOLDS - 1)
        self._thresholds = np.array([-_BELOW_0, *inner, 1 + _BELOW_0], np.float32)
        self._shape = [2, _THRESHOLDS + 1]
        shape = self._shape
        self._sums = tf1.Variable(
            lambda: tf.zeros(shape),
            trainable=False,
            use_resource=True,
            collections=[tf1.GraphKeys.LOCAL_VARIABLES, tf1.GraphKeys.METRIC_VARIABLES],
            name="counts",
        )

    def add(self, labels: Any, predictions: Any, weights: Any) -> tf.Operation:
        """Returns the operation that adds a batch."""
        predictions = tf.cast(predictions, tf.float32)
        weights = tf.ones([]) if weights is None else tf.cast(weights, tf.float32)
        weights = tf.reshape(tf.broadcast_to(weights, tf.shape(predictions)), [-1])
        predictions = tf.reshape(predictions, [-1])
        is_positive = tf.reshape(tf.cast(labels, tf.bool), [-1])
        in_range = tf.reduce_all((predictions >= 0.0) & (predictions <= 1.0))  # false for NaN
        data = ["predictions must be in [0, 1]", predictions]
        with tf.control_dependencies([tf.raw_ops.Assert(condition=in_range, data=data)]):
            below = tf.searchsorted(self._thresholds, predictions, side="left")
        rows = below + (_THRESHOLDS + 1) * tf.cast(is_positive, tf.int32)
        sums = tf.math.unsorted_segment_sum(weights, rows, 2 * (_THRESHOLDS + 1))
        return self._sums.assign_add(tf.reshape(sums, self._shape), read_value=False)

    def area(self, curve: str, summation_method: str) -> tf.Tensor:
        """Returns the area under the curve of all batches so far."""
        sums = self._sums.read_value()
        # By threshold: examples with a greater prediction count as positive.
        false_positives, true_positives = tf.unstack(
            tf.cumsum(sums, axis=1, exclusive=True, reverse=True)[:, :-1]
        )
        true_negatives, false_negatives = tf.unstack(tf.cumsum(sums, axis=1)[:, :-1])
        positives = true_positives + false_negatives
        predicted = true_positives + false_positives
        if summation_method == CAREFUL_INTERPOLATION:
            return _interpolated(true_positives, predicted, positives)
        recall = (true_positives + _EPSILON) / (positives + _EPSILON)
        if curve == ROC:
            x = false_positives / (false_positives + true_negatives + _EPSILON)
            y = recall
        else:
            x = recall
            y = (true_positives + _EPSILON) / (predicted + _EPSILON)
        return tf.reduce_sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2.0)


def _interpolated(true_positives: tf.Tensor, predicted: tf.Tensor, positives: tf.Tensor) -> tf.Tensor:
    """Returns the area under the precision-recall curve.

    Between two thresholds, true positives are taken as a linear function of the predicted positives p:
    t = slope p + intercept. The integral of the precision t / p over the recall is
    slope (change of t + intercept log(p / next p)) / positives.
    """
    change = true_positives[:-1] - true_positives[1:]
    change_predicted = tf.maximum(predicted[:-1] - predicted[1:], 0.0)
    slope = tf.math.divide_no_nan(change, change_predicted)
    intercept = true_positives[1:] - slope * predicted[1:]
    has_both = (predicted[:-1] > 0) & (predicted[1:] > 0)
    ratio = tf.math.divide_no_nan(predicted[:-1], tf.maximum(predicted[1:], 0.0))
    ratio = tf.where(has_both, ratio, tf.ones_like(ratio))
    parts = slope * (change + intercept * tf.math.log(ratio))
    return tf.reduce_sum(tf.math.divide_no_nan(parts, tf.maximum(positives[1:], 0.0)))
