"""MultiClassHead: three or more classes, a logit for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.estimator_spec import DEFAULT_SERVING_SIGNATURE
from estimator_core.export.export_outputs import ExportOutput, PredictOutput
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

_PREDICTIONS = (
    PredictionKeys.LOGITS,
    PredictionKeys.PROBABILITIES,
    PredictionKeys.CLASS_IDS,
    PredictionKeys.CLASSES,
    PredictionKeys.ALL_CLASS_IDS,
    PredictionKeys.ALL_CLASSES,
)


class MultiClassHead(Head):
    """Multi-class classification: softmax cross entropy over a logit for each class.

    Labels are class ids, or the words of `label_vocabulary`, with shape `[batch_size]` or
    `[batch_size, 1]`.

    Example:
        >>> MultiClassHead(n_classes=5).logits_dimension
        5

    Args:
        n_classes: Number of classes, above 2.
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]` or `[batch_size, 1]`; None weighs all examples the same.
        label_vocabulary: The labels as strings, in the order of their ids; None means labels are
            integers in [0, n_classes).
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        loss_fn: Replaces the cross entropy: a function of `labels`, `logits`, and optionally
            `features` and `loss_reduction`, that returns losses `[batch_size, 1]`.
        name: Appended to metric keys and summary tags as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.estimator.MultiClassHead`.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        if n_classes is None or n_classes <= 2:
            raise ValueError(
                "n_classes must be > 2; BinaryClassHead is for two. "
                f"Received: n_classes={n_classes}"
            )
        self._n_classes = int(n_classes)
        self._weight_column = check_weight_column(weight_column)
        self._vocabulary = (
            None if label_vocabulary is None else LabelVocabulary(label_vocabulary, self._n_classes)
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
        """One logit for each class."""
        return self._n_classes

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
            label_ids = self._processed_labels(labels, logits)
            unweighted_loss, weights = self._loss_and_weights(label_ids, logits, features)
            return reduce_loss(
                unweighted_loss, weights, self._loss_reduction, regularization_losses
            )

    def _processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        labels = checked_labels(labels, logits, labels_dimension=1)
        if labels.dtype.is_floating:
            raise ValueError(
                "Labels dtype should be integer: they are class ids. "
                f"Received: labels of {labels.dtype.name}"
            )
        return checked_class_ids(labels, self._n_classes, self._vocabulary)

    def _loss_and_weights(
        self, label_ids: tf.Tensor, logits: tf.Tensor, features: Any
    ) -> tuple[tf.Tensor, Any]:
        if self._loss_fn is not None:
            loss = call_loss_fn(self._loss_fn, label_ids, logits, features, 1, self._loss_reduction)
        else:
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.squeeze(label_ids, axis=-1), logits=logits
            )[..., tf.newaxis]
        return loss, checked_weights(features, self._weight_column, loss)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the predictions by key.

        Args:
            logits: float32 `[batch_size, n_classes]`.
            keys: Any of "logits", "probabilities", "all_class_ids", "all_classes"
                `[batch_size, n_classes]`, "class_ids", "classes" `[batch_size, 1]`; None computes
                all.

        Raises:
            ValueError: An unknown key, or logits of another shape.
        """
        keys = wanted(keys, _PREDICTIONS)
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            class_ids = tf.argmax(logits, axis=-1)[..., tf.newaxis]
            compute: dict[str, Callable[[], Any]] = {
                PredictionKeys.LOGITS: lambda: logits,
                PredictionKeys.PROBABILITIES: lambda: tf.nn.softmax(logits, name="probabilities"),
                PredictionKeys.CLASS_IDS: lambda: class_ids,
                PredictionKeys.CLASSES: lambda: class_names(class_ids, self._vocabulary),
                PredictionKeys.ALL_CLASS_IDS: lambda: all_class_ids(logits, self._n_classes),
                PredictionKeys.ALL_CLASSES: lambda: all_class_names(
                    logits, self._n_classes, self._vocabulary
                ),
            }
            return {key: compute[key]() for key in keys}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key; see `Head.metrics`."""
        found = {
            self._with_name(MetricKeys.LOSS_MEAN): metrics_lib.mean(MetricKeys.LOSS_MEAN),
            self._with_name(MetricKeys.ACCURACY): metrics_lib.accuracy(MetricKeys.ACCURACY),
        }
        if regularization_losses:
            name = MetricKeys.LOSS_REGULARIZATION
            found[self._with_name(name)] = metrics_lib.mean(name)
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
        label_ids = self._processed_labels(labels, logits)
        losses, weights = self._loss_and_weights(label_ids, logits, features)
        class_ids = self.predictions(logits, [PredictionKeys.CLASS_IDS])[PredictionKeys.CLASS_IDS]
        eval_metrics[self._with_name(MetricKeys.LOSS_MEAN)].update_state(
            losses, sample_weight=weights
        )
        eval_metrics[self._with_name(MetricKeys.ACCURACY)].update_state(
            label_ids, class_ids, sample_weight=weights
        )
        if regularization_losses:
            key = self._with_name(MetricKeys.LOSS_REGULARIZATION)
            eval_metrics[key].update_state(tf.add_n(list(regularization_losses)))
        return eval_metrics

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the classification (the default) and predict signatures."""
        classification = classification_output(
            predictions[PredictionKeys.PROBABILITIES], self._n_classes, self._vocabulary
        )
        return {
            DEFAULT_SERVING_SIGNATURE: classification,
            SignatureKeys.CLASSIFICATION: classification,
            SignatureKeys.PREDICT: PredictOutput(predictions),
        }
