"""BinaryClassHead: two classes, one logit."""

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
    checked_class_ids,
    checked_labels,
    checked_logits,
    checked_weights,
)
from estimator_core.heads.class_predictions import (
    all_class_ids,
    all_class_names,
    class_names,
    classification_output,
    wanted,
)
from estimator_core.heads.label_vocabulary import LabelVocabulary
from estimator_core.heads.loss_reduction import (
    LossReduction,
    check_loss_reduction,
    reduce_loss,
)
from estimator_core.keys import MetricKeys, PredictionKeys, SignatureKeys

_N_CLASSES = 2
_PREDICTIONS = (
    PredictionKeys.LOGITS,
    PredictionKeys.LOGISTIC,
    PredictionKeys.PROBABILITIES,
    PredictionKeys.CLASS_IDS,
    PredictionKeys.CLASSES,
    PredictionKeys.ALL_CLASS_IDS,
    PredictionKeys.ALL_CLASSES,
)


class BinaryClassHead(Head):
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
        loss_fn: Replaces the cross entropy: a function of `labels`, `logits`, and optionally
            `features` and `loss_reduction`, that returns losses `[batch_size, 1]`.
        name: Appended to metric keys and summary tags as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has a value that can't work.

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
        self._weight_column = check_weight_column(weight_column)
        self._thresholds = tuple(thresholds or ())
        for threshold in self._thresholds:
            if not 0.0 < threshold < 1.0:
                raise ValueError(f"thresholds must be in (0, 1). Received: thresholds={thresholds}")
        self._vocabulary = (
            None if label_vocabulary is None else LabelVocabulary(label_vocabulary, _N_CLASSES)
        )
        self._loss_reduction = check_loss_reduction(loss_reduction)
        self._loss_fn = check_loss_fn(loss_fn)
        self._name = name

    @property
    def name(self) -> str | None:
        """Name of the head, or None."""
        return self._name

    @property
    def logits_dimension(self) -> int:
        """One logit separates two classes."""
        return 1

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
        labels = checked_labels(labels, logits, self.logits_dimension)
        return tf.cast(checked_class_ids(labels, _N_CLASSES, self._vocabulary), tf.float32)

    def _loss_and_weights(
        self, labels: tf.Tensor, logits: tf.Tensor, features: Any
    ) -> tuple[tf.Tensor, Any]:
        if self._loss_fn is not None:
            loss = call_loss_fn(self._loss_fn, labels, logits, features, 1, self._loss_reduction)
        else:
            loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return loss, checked_weights(features, self._weight_column, loss)

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
        keys = wanted(keys, _PREDICTIONS)
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            two_class_logits = tf.concat([tf.zeros_like(logits), logits], axis=-1)
            class_ids = tf.argmax(two_class_logits, axis=-1)[..., tf.newaxis]
            compute: dict[str, Callable[[], Any]] = {
                PredictionKeys.LOGITS: lambda: logits,
                PredictionKeys.LOGISTIC: lambda: tf.sigmoid(logits, name="logistic"),
                PredictionKeys.PROBABILITIES: lambda: tf.nn.softmax(
                    two_class_logits, name="probabilities"
                ),
                PredictionKeys.CLASS_IDS: lambda: class_ids,
                PredictionKeys.CLASSES: lambda: class_names(class_ids, self._vocabulary),
                PredictionKeys.ALL_CLASS_IDS: lambda: all_class_ids(logits, _N_CLASSES),
                PredictionKeys.ALL_CLASSES: lambda: all_class_names(
                    logits, _N_CLASSES, self._vocabulary
                ),
            }
            return {key: compute[key]() for key in keys}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key; see `Head.metrics`."""
        key = self._with_name
        found = {
            key(MetricKeys.LOSS_MEAN): metrics_lib.mean(MetricKeys.LOSS_MEAN),
            key(MetricKeys.ACCURACY): metrics_lib.accuracy(MetricKeys.ACCURACY),
            key(MetricKeys.PRECISION): metrics_lib.precision(MetricKeys.PRECISION),
            key(MetricKeys.RECALL): metrics_lib.recall(MetricKeys.RECALL),
            key(MetricKeys.PREDICTION_MEAN): metrics_lib.mean(MetricKeys.PREDICTION_MEAN),
            key(MetricKeys.LABEL_MEAN): metrics_lib.mean(MetricKeys.LABEL_MEAN),
            key(MetricKeys.ACCURACY_BASELINE): metrics_lib.accuracy_baseline(
                MetricKeys.ACCURACY_BASELINE
            ),
            key(MetricKeys.AUC): metrics_lib.auc(MetricKeys.AUC),
            key(MetricKeys.AUC_PR): metrics_lib.auc(MetricKeys.AUC_PR, curve="PR"),
        }
        if regularization_losses:
            name = MetricKeys.LOSS_REGULARIZATION
            found[key(name)] = metrics_lib.mean(name)
        for threshold in self._thresholds:
            for at_threshold, metric in (
                (MetricKeys.ACCURACY_AT_THRESHOLD, metrics_lib.accuracy),
                (MetricKeys.PRECISION_AT_THRESHOLD, metrics_lib.precision),
                (MetricKeys.RECALL_AT_THRESHOLD, metrics_lib.recall),
            ):
                name = at_threshold.format(threshold)
                found[key(name)] = metric(name)
        return found

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
        predictions = self.predictions(logits, [PredictionKeys.LOGISTIC, PredictionKeys.CLASS_IDS])
        logistic = predictions[PredictionKeys.LOGISTIC]
        class_ids = predictions[PredictionKeys.CLASS_IDS]

        def update(name: str, *values: Any) -> None:
            eval_metrics[self._with_name(name)].update_state(*values, sample_weight=weights)

        update(MetricKeys.LOSS_MEAN, losses)
        update(MetricKeys.PREDICTION_MEAN, logistic)
        update(MetricKeys.LABEL_MEAN, labels)
        update(MetricKeys.ACCURACY_BASELINE, labels)
        for name in (MetricKeys.ACCURACY, MetricKeys.PRECISION, MetricKeys.RECALL):
            update(name, labels, class_ids)
        for name in (MetricKeys.AUC, MetricKeys.AUC_PR):
            update(name, labels, logistic)
        for threshold in self._thresholds:
            positive = tf.cast(logistic > threshold, tf.float32)
            update(MetricKeys.ACCURACY_AT_THRESHOLD.format(threshold), labels, positive)
            update(MetricKeys.PRECISION_AT_THRESHOLD.format(threshold), labels, positive)
            update(MetricKeys.RECALL_AT_THRESHOLD.format(threshold), labels, positive)
        if regularization_losses:
            key = self._with_name(MetricKeys.LOSS_REGULARIZATION)
            eval_metrics[key].update_state(tf.add_n(list(regularization_losses)))
        return eval_metrics

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the classification (the default), regression and predict signatures."""
        classification = classification_output(
            predictions[PredictionKeys.PROBABILITIES], _N_CLASSES, self._vocabulary
        )
        return {
            DEFAULT_SERVING_SIGNATURE: classification,
            SignatureKeys.CLASSIFICATION: classification,
            SignatureKeys.REGRESSION: RegressionOutput(predictions[PredictionKeys.LOGISTIC]),
            SignatureKeys.PREDICT: PredictOutput(predictions),
        }
