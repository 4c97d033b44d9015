"""MultiLabelHead: any number of classes for an example, with a logit for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.assertions import assertion
from estimator_core.heads.checks import checked_class_ids, checked_labels, checked_logits, static_n_classes
from estimator_core.heads.class_predictions import (
    LabelVocabulary,
    all_class_names,
    classification_outputs,
    computed,
)
from estimator_core.heads.loss_reduction import LossReduction
from estimator_core.heads.thresholds import check_thresholds, threshold_metrics, threshold_values
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.export_outputs import ExportOutput
from estimator_core.spec.keys import MetricKeys, PredictionKeys


class MultiLabelHead(WeightedHead):
    """Multi-label classification: decides for each class independently if an example belongs to it.

    The loss of an example is the mean of the sigmoid cross entropies of its classes. Labels are
    dense, `[batch_size, n_classes]` of 0 and 1, or lists of classes of any length: a `SparseTensor`
    or `RaggedTensor`, `[batch_size, any]`, of class ids or of words of `label_vocabulary`.

    Example:
        >>> head = MultiLabelHead(n_classes=3)
        >>> with tf.Graph().as_default():
        ...     print(sorted(head.predictions(tf.constant([[0.5, -1.0, 2.0]]))))
        ['classes', 'logits', 'probabilities']

    Args:
        n_classes: Number of classes, above 1.
        weight_column: Feature name or `tf.feature_column.numeric_column` of example weights, shape
            `[batch_size]` or `[batch_size, 1]`; None weighs all examples the same.
        thresholds: Probabilities in (0, 1); accuracy, precision and recall are reported at each,
            over all classes together.
        label_vocabulary: The classes as strings, in the order of their ids; None means labels are
            integers.
        loss_reduction: "sum_over_batch_size" (mean over the batch) or "sum".
        loss_fn: Function that replaces the cross entropy, of `labels` `[batch_size, n_classes]`,
            `logits`, and optionally `features` and `loss_reduction`, that returns losses
            `[batch_size, 1]`.
        classes_for_class_based_metrics: Class ids, or words of `label_vocabulary`, with their own mean
            probability and AUCs; None or empty means none.
        name: Suffix of metric keys and summary tags, as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has an invalid value.

    Source: `tf.estimator.MultiLabelHead`. Only ours takes a `RaggedTensor`.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        classes_for_class_based_metrics: Sequence[int | str] | None = None,
        name: str | None = None,
    ):
        n_classes = static_n_classes(n_classes)
        if n_classes is None or n_classes < 2:
            raise ValueError(
                f"n_classes must be > 1 for multi-label classification. Received: n_classes={n_classes}"
            )
        super().__init__(weight_column, loss_reduction, loss_fn, name)
        self._n_classes = int(n_classes)
        self._thresholds = check_thresholds(thresholds)
        self._vocabulary = (
            None if label_vocabulary is None else LabelVocabulary(label_vocabulary, self._n_classes)
        )
        self._metric_classes = _metric_classes(
            classes_for_class_based_metrics, self._n_classes, label_vocabulary
        )

    @property
    def logits_dimension(self) -> int:
        """One logit for each class."""
        return self._n_classes

    def processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns labels as float32 `[batch_size, n_classes]` of 0 and 1."""
        if isinstance(labels, tf.RaggedTensor):
            labels = labels.to_sparse()
        if isinstance(labels, tf.SparseTensor):
            class_ids = checked_class_ids(labels.values, self._n_classes, self._vocabulary)
            listed = tf.SparseTensor(labels.indices, tf.cast(class_ids, tf.int64), labels.dense_shape)
            labels = tf.sparse.to_indicator(listed, self._n_classes)
        labels = checked_labels(labels, logits, self._n_classes)
        if labels.dtype == tf.string:
            raise ValueError(
                "Labels that are words must be a SparseTensor or a RaggedTensor; dense labels are "
                f"0 or 1 for each class. Received: labels={labels}"
            )
        labels = tf.cast(labels, tf.float32)
        in_range = tf.reduce_all((labels >= 0.0) & (labels <= 1.0))
        message = "Dense labels must be 0 or 1 for each class. Received labels:"
        with tf.control_dependencies(assertion(in_range, message, labels)):
            return tf.identity(labels)

    def own_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the means of the classes' sigmoid cross entropies, `[batch_size, 1]`."""
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses, axis=-1, keepdims=True)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the predictions by key.

        Args:
            logits: float32 `[batch_size, n_classes]`.
            keys: Any of "logits", "probabilities", and "classes", the names of all classes; each has
                the shape of the logits. None computes all.

        Raises:
            ValueError: An unknown key, or logits of another shape.
        """
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            compute = {
                PredictionKeys.LOGITS: lambda: logits,
                PredictionKeys.PROBABILITIES: lambda: tf.sigmoid(logits, name="probabilities"),
                PredictionKeys.CLASSES: lambda: all_class_names(logits, self._n_classes, self._vocabulary),
            }
            return computed(compute, keys)

    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name; see `WeightedHead.own_metrics`."""
        metrics = {
            MetricKeys.AUC: metrics_lib.auc(MetricKeys.AUC),
            MetricKeys.AUC_PR: metrics_lib.auc(MetricKeys.AUC_PR, curve="PR"),
            **threshold_metrics(self._thresholds),
        }
        for suffix in self._metric_classes.values():
            name = f"{MetricKeys.PROBABILITY_MEAN}/{suffix}"
            metrics[name] = metrics_lib.mean(name)
            for key, curve in ((MetricKeys.AUC, "ROC"), (MetricKeys.AUC_PR, "PR")):
                name = f"{key}/{suffix}"
                metrics[name] = metrics_lib.auc(name, curve)
        return metrics

    def metric_values(self, labels: tf.Tensor, logits: tf.Tensor) -> Iterator[tuple[Any, ...]]:
        """Yields (name of a metric, *values of a batch); see `WeightedHead.metric_values`."""
        predictions = self.predictions(logits, [PredictionKeys.PROBABILITIES])
        probabilities = predictions[PredictionKeys.PROBABILITIES]
        yield MetricKeys.AUC, labels, probabilities
        yield MetricKeys.AUC_PR, labels, probabilities
        yield from threshold_values(self._thresholds, labels, probabilities)
        for class_id, suffix in self._metric_classes.items():
            of_class = probabilities[..., class_id : class_id + 1]
            labels_of_class = labels[..., class_id : class_id + 1]
            yield f"{MetricKeys.PROBABILITY_MEAN}/{suffix}", of_class
            yield f"{MetricKeys.AUC}/{suffix}", labels_of_class, of_class
            yield f"{MetricKeys.AUC_PR}/{suffix}", labels_of_class, of_class

    def export_outputs(self, predictions: Mapping[str, Any]) -> dict[str, ExportOutput]:
        """Returns the classification (the default) and predict signatures."""
        return classification_outputs(predictions, self._n_classes, self._vocabulary)


def _metric_classes(
    classes: Sequence[int | str] | None, n_classes: int, label_vocabulary: Sequence[str] | None
) -> dict[int, str]:
    """Returns the suffixes of the metrics of single classes, by class id."""
    by_class: dict[int, str] = {}
    for wanted_class in classes or ():
        if isinstance(wanted_class, str):
            if label_vocabulary is None or wanted_class not in label_vocabulary:
                raise ValueError(
                    "classes_for_class_based_metrics may be strings only when they are in "
                    f"label_vocabulary={label_vocabulary}. Received: {wanted_class!r}"
                )
            class_id = list(label_vocabulary).index(wanted_class)
        else:
            class_id = int(wanted_class)
            if not 0 <= class_id < n_classes:
                raise ValueError(
                    f"classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. "
                    f"Received: {wanted_class!r}"
                )
        by_class[class_id] = f"class{class_id}" if label_vocabulary is None else label_vocabulary[class_id]
    return by_class
