"""MultiClassHead: three or more classes, with a logit for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.checks import checked_class_ids, checked_labels, checked_logits, static_n_classes
from estimator_core.heads.class_predictions import (
    LabelVocabulary,
    all_class_ids,
    all_class_names,
    class_names,
    classification_outputs,
    computed,
)
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.export_outputs import ExportOutput
from estimator_core.spec.keys import MetricKeys, PredictionKeys


class MultiClassHead(WeightedHead):
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
        loss_fn: Function that replaces the cross entropy, of `labels`, `logits`, and optionally
            `features` and `loss_reduction`, that returns losses `[batch_size, 1]`.
        name: Suffix of metric keys and summary tags, as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has an invalid value.

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
        n_classes = static_n_classes(n_classes)
        if n_classes is None or n_classes <= 2:
            raise ValueError(
                f"n_classes must be > 2; BinaryClassHead is for two. Received: n_classes={n_classes}"
            )
        super().__init__(weight_column, loss_reduction, loss_fn, name)
        self._n_classes = int(n_classes)
        self._vocabulary = (
            None if label_vocabulary is None else LabelVocabulary(label_vocabulary, self._n_classes)
        )

    @property
    def logits_dimension(self) -> int:
        """One logit for each class."""
        return self._n_classes

    def processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns labels as class ids, `[batch_size, 1]`."""
        labels = checked_labels(labels, logits, labels_dimension=1)
        if labels.dtype.is_floating:
            raise ValueError(
                f"Labels dtype should be integer: they are class ids. Received: labels of {labels.dtype.name}"
            )
        return checked_class_ids(labels, self._n_classes, self._vocabulary)

    def own_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the softmax cross entropies, `[batch_size, 1]`."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.squeeze(labels, axis=-1), logits=logits
        )[..., tf.newaxis]

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
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            class_ids = tf.argmax(logits, axis=-1)[..., tf.newaxis]
            compute = {
                PredictionKeys.LOGITS: lambda: logits,
                PredictionKeys.PROBABILITIES: lambda: tf.nn.softmax(logits, name="probabilities"),
                PredictionKeys.CLASS_IDS: lambda: class_ids,
                PredictionKeys.CLASSES: lambda: class_names(class_ids, self._vocabulary),
                PredictionKeys.ALL_CLASS_IDS: lambda: all_class_ids(logits, self._n_classes),
                PredictionKeys.ALL_CLASSES: lambda: all_class_names(
                    logits, self._n_classes, self._vocabulary
                ),
            }
            return computed(compute, keys)

    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name; see `WeightedHead.own_metrics`."""
        return {MetricKeys.ACCURACY: metrics_lib.accuracy(MetricKeys.ACCURACY)}

    def metric_values(self, labels: tf.Tensor, logits: tf.Tensor) -> Iterator[tuple[Any, ...]]:
        """Yields (name of a metric, *values of a batch); see `WeightedHead.metric_values`."""
        class_ids = self.predictions(logits, [PredictionKeys.CLASS_IDS])[PredictionKeys.CLASS_IDS]
        yield MetricKeys.ACCURACY, labels, class_ids

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the classification (the default) and predict signatures."""
        return classification_outputs(predictions, self._n_classes, self._vocabulary)
