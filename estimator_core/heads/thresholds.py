"""Accuracy, precision and recall at thresholds, above which probabilities count as 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.spec.keys import MetricKeys

_METRICS = {
    MetricKeys.ACCURACY_AT_THRESHOLD: metrics_lib.accuracy,
    MetricKeys.PRECISION_AT_THRESHOLD: metrics_lib.precision,
    MetricKeys.RECALL_AT_THRESHOLD: metrics_lib.recall,
}


def check_thresholds(thresholds: Sequence[float] | None) -> tuple[float, ...]:
    """Returns the thresholds as a tuple, empty for None."""
    checked = tuple(thresholds or ())
    if not all(0.0 < threshold < 1.0 for threshold in checked):
        raise ValueError(f"thresholds must be in (0, 1). Received: thresholds={thresholds}")
    return checked


def threshold_metrics(thresholds: Sequence[float]) -> dict[str, metrics_lib.Metric]:
    """Returns fresh metrics by name, three for each threshold."""
    return {
        key.format(at): metric(key.format(at), at) for at in thresholds for key, metric in _METRICS.items()
    }


def threshold_values(
    thresholds: Sequence[float], labels: tf.Tensor, probabilities: tf.Tensor
) -> Iterator[tuple[Any, ...]]:
    """Yields (name, labels, predictions) of a batch for each of `threshold_metrics`."""
    for threshold in thresholds:
        positive = tf.cast(probabilities > threshold, tf.float32)
        for key in _METRICS:
            yield key.format(threshold), labels, positive
