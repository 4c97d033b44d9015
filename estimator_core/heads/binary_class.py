"""BinaryClassHead: two classes, one logit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.checks import checked_class_ids, checked_labels, checked_logits
from estimator_core.heads.class_predictions import (
    LabelVocabulary,
    all_class_ids,
    all_class_names,
    class_names,
    classification_outputs,
    computed,
)
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.thresholds import check_thresholds, threshold_metrics, threshold_values
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.export_outputs import ExportOutput, RegressionOutput
from estimator_core.spec.keys import MetricKeys, PredictionKeys, SignatureKeys

_N_CLASSES = 2


class BinaryClassHead(WeightedHead):
    """Binary classification: sigmoid cross entropy over one logit.

    Labels are 0 and 1 (or probabilities in between), or the two words of `label_vocabulary`, with
    shape `[batch_size]` or `[batch_size, 1]`.

    Example:
        >>> head = BinaryClassHead()
        >>> with tf.Graph().as_default():
        ...     print(sorted(head.predictions(tf.constant([[0.5], [-1.0]])))[:3])
        ['all_class_ids', 'all_classes', 'class_ids']

    Args:
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]` or `[batch_size, 1]`; None weighs all examples the same.
        thresholds: Probabilities in (0, 1); accuracy, precision and recall are also reported at each.
        label_vocabulary: The two labels as strings, the negative one first; None means labels are
            numbers.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        loss_fn: Function that replaces the cross entropy, of `labels`, `logits`, and optionally
            `features` and `loss_reduction`, that returns losses `[batch_size, 1]`.
        name: Suffix of metric keys and summary tags, as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has an invalid value.

    Source: `tf.estimator.BinaryClassHead`.
    """

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        super().__init__(weight_column, loss_reduction, loss_fn, name)
        self._thresholds = check_thresholds(thresholds)
        self._vocabulary = None if label_vocabulary is None else LabelVocabulary(label_vocabulary, _N_CLASSES)

    @property
    def logits_dimension(self) -> int:
        """One logit separates two classes."""
        return 1

    def processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns labels as float32 `[batch_size, 1]`."""
        labels = checked_labels(labels, logits, self.logits_dimension)
        return tf.cast(checked_class_ids(labels, _N_CLASSES, self._vocabulary), tf.float32)

    def own_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the sigmoid cross entropies, `[batch_size, 1]`."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the predictions by key.

        Args:
            logits: float32 `[batch_size, 1]`.
            keys: Any of "logits", "logistic", "probabilities" `[batch_size, 2]`, "class_ids",
                "classes" `[batch_size, 1]`, "all_class_ids", "all_classes" `[batch_size, 2]`;
                None computes all.

        Raises:
            ValueError: An unknown key, or logits of another shape.
        """
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            two_class_logits = tf.concat([tf.zeros_like(logits), logits], axis=-1)
            class_ids = tf.argmax(two_class_logits, axis=-1)[..., tf.newaxis]
            compute = {
                PredictionKeys.LOGITS: lambda: logits,
                PredictionKeys.LOGISTIC: lambda: tf.sigmoid(logits, name="logistic"),
                PredictionKeys.PROBABILITIES: lambda: _probabilities(two_class_logits),
                PredictionKeys.CLASS_IDS: lambda: class_ids,
                PredictionKeys.CLASSES: lambda: class_names(class_ids, self._vocabulary),
                PredictionKeys.ALL_CLASS_IDS: lambda: all_class_ids(logits, _N_CLASSES),
                PredictionKeys.ALL_CLASSES: lambda: all_class_names(logits, _N_CLASSES, self._vocabulary),
            }
            return computed(compute, keys)

    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name; see `WeightedHead.own_metrics`."""
        return {
            MetricKeys.ACCURACY: metrics_lib.accuracy(MetricKeys.ACCURACY),
            MetricKeys.PRECISION: metrics_lib.precision(MetricKeys.PRECISION),
            MetricKeys.RECALL: metrics_lib.recall(MetricKeys.RECALL),
            MetricKeys.PREDICTION_MEAN: metrics_lib.mean(MetricKeys.PREDICTION_MEAN),
            MetricKeys.LABEL_MEAN: metrics_lib.mean(MetricKeys.LABEL_MEAN),
            MetricKeys.ACCURACY_BASELINE: metrics_lib.accuracy_baseline(MetricKeys.ACCURACY_BASELINE),
            MetricKeys.AUC: metrics_lib.auc(MetricKeys.AUC),
            MetricKeys.AUC_PR: metrics_lib.auc(MetricKeys.AUC_PR, curve="PR"),
            **threshold_metrics(self._thresholds),
        }

    def metric_values(self, labels: tf.Tensor, logits: tf.Tensor) -> Iterator[tuple[Any, ...]]:
        """Yields (name of a metric, *values of a batch); see `WeightedHead.metric_values`."""
        predictions = self.predictions(logits, [PredictionKeys.LOGISTIC, PredictionKeys.CLASS_IDS])
        logistic = predictions[PredictionKeys.LOGISTIC]
        class_ids = predictions[PredictionKeys.CLASS_IDS]
        yield MetricKeys.PREDICTION_MEAN, logistic
        yield MetricKeys.LABEL_MEAN, labels
        yield MetricKeys.ACCURACY_BASELINE, labels
        for name in (MetricKeys.ACCURACY, MetricKeys.PRECISION, MetricKeys.RECALL):
            yield name, labels, class_ids
        for name in (MetricKeys.AUC, MetricKeys.AUC_PR):
            yield name, labels, logistic
        yield from threshold_values(self._thresholds, labels, logistic)

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the classification (the default), regression and predict signatures."""
        outputs = classification_outputs(predictions, _N_CLASSES, self._vocabulary)
        outputs[SignatureKeys.REGRESSION] = RegressionOutput(predictions[PredictionKeys.LOGISTIC])
        return outputs


def _probabilities(logits: tf.Tensor) -> tf.Tensor:
    """Returns the softmax of `[batch_size, 2]`.

    It uses small operations: with oneDNN, TensorFlow's softmax takes at least 0.1 ms.
    """
    exponentials = tf.exp(logits - tf.reduce_max(logits, axis=-1, keepdims=True))
    sums = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
    return tf.divide(exponentials, sums, name="probabilities")
