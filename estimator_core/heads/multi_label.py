"""MultiLabelHead: any number of classes at once, a logit for each."""

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
    all_class_names,
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

_PREDICTIONS = (PredictionKeys.LOGITS, PredictionKeys.PROBABILITIES, PredictionKeys.CLASSES)


class MultiLabelHead(Head):
    """Multi-label classification: for each class on its own, whether an example belongs to it.

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
        loss_fn: Replaces the cross entropy: a function of `labels` `[batch_size, n_classes]`,
            `logits`, and optionally `features` and `loss_reduction`, that returns losses
            `[batch_size, 1]`.
        classes_for_class_based_metrics: Class ids, or words of `label_vocabulary`, that get a mean
            probability and AUCs of their own; None or empty means none.
        name: Appended to metric keys and summary tags as "/<name>"; None appends nothing.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.estimator.MultiLabelHead`. The `RaggedTensor` is ours.
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
        if n_classes is None or n_classes < 2:
            raise ValueError(
                f"n_classes must be > 1 for multi-label classification. Received: n_classes={n_classes}"
            )
        self._n_classes = int(n_classes)
        self._weight_column = check_weight_column(weight_column)
        self._thresholds = tuple(thresholds or ())
        for threshold in self._thresholds:
            if not 0.0 < threshold < 1.0:
                raise ValueError(f"thresholds must be in (0, 1). Received: thresholds={thresholds}")
        self._vocabulary = (
            None if label_vocabulary is None else LabelVocabulary(label_vocabulary, self._n_classes)
        )
        self._loss_reduction = check_loss_reduction(loss_reduction)
        self._loss_fn = check_loss_fn(loss_fn)
        self._metric_classes = _metric_classes(
            classes_for_class_based_metrics, self._n_classes, label_vocabulary
        )
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
            labels = self._processed_labels(labels, logits)
            unweighted_loss, weights = self._loss_and_weights(labels, logits, features)
            return reduce_loss(
                unweighted_loss, weights, self._loss_reduction, regularization_losses
            )

    def _processed_labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns labels as float32 `[batch_size, n_classes]` of 0 and 1."""
        if isinstance(labels, tf.RaggedTensor):
            labels = labels.to_sparse()
        if isinstance(labels, tf.SparseTensor):
            class_ids = checked_class_ids(labels.values, self._n_classes, self._vocabulary)
            listed = tf.SparseTensor(
                labels.indices, tf.cast(class_ids, tf.int64), labels.dense_shape
            )
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
        # The raw op, as in checks.py: tf.debugging.assert_* would add a conditional.
        check = tf.raw_ops.Assert(condition=in_range, data=[message, labels], summarize=20)
        with tf.control_dependencies([check]):
            return tf.identity(labels)

    def _loss_and_weights(
        self, labels: tf.Tensor, logits: tf.Tensor, features: Any
    ) -> tuple[tf.Tensor, Any]:
        if self._loss_fn is not None:
            loss = call_loss_fn(self._loss_fn, labels, logits, features, 1, self._loss_reduction)
        else:
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits),
                axis=-1,
                keepdims=True,
            )
        return loss, checked_weights(features, self._weight_column, loss)

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Returns the predictions by key.

        Args:
            logits: float32 `[batch_size, n_classes]`.
            keys: Any of "logits", "probabilities", and "classes", the names of all classes; each has
                the shape of the logits. None computes all.

        Raises:
            ValueError: An unknown key, or logits of another shape.
        """
        keys = wanted(keys, _PREDICTIONS)
        with tf.name_scope("predictions"):
            logits = checked_logits(logits, self.logits_dimension)
            compute: dict[str, Callable[[], Any]] = {
                PredictionKeys.LOGITS: lambda: logits,
                PredictionKeys.PROBABILITIES: lambda: tf.sigmoid(logits, name="probabilities"),
                PredictionKeys.CLASSES: lambda: all_class_names(
                    logits, self._n_classes, self._vocabulary
                ),
            }
            return {key: compute[key]() for key in keys}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Returns fresh metrics by key; see `Head.metrics`."""
        found = {
            MetricKeys.LOSS_MEAN: metrics_lib.mean(MetricKeys.LOSS_MEAN),
            MetricKeys.AUC: metrics_lib.auc(MetricKeys.AUC),
            MetricKeys.AUC_PR: metrics_lib.auc(MetricKeys.AUC_PR, curve="PR"),
        }
        if regularization_losses:
            name = MetricKeys.LOSS_REGULARIZATION
            found[name] = metrics_lib.mean(name)
        for threshold in self._thresholds:
            for at_threshold, metric in (
                (MetricKeys.ACCURACY_AT_THRESHOLD, metrics_lib.accuracy),
                (MetricKeys.PRECISION_AT_THRESHOLD, metrics_lib.precision),
                (MetricKeys.RECALL_AT_THRESHOLD, metrics_lib.recall),
            ):
                name = at_threshold.format(threshold)
                found[name] = metric(name)
        for suffix in self._metric_classes.values():
            name = f"{MetricKeys.PROBABILITY_MEAN}/{suffix}"
            found[name] = metrics_lib.mean(name)
            for key, curve in ((MetricKeys.AUC, "ROC"), (MetricKeys.AUC_PR, "PR")):
                name = f"{key}/{suffix}"
                found[name] = metrics_lib.auc(name, curve)
        return {self._with_name(name): metric for name, metric in found.items()}

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
        probabilities = self.predictions(logits, [PredictionKeys.PROBABILITIES])[
            PredictionKeys.PROBABILITIES
        ]

        def update(name: str, *values: Any) -> None:
            eval_metrics[self._with_name(name)].update_state(*values, sample_weight=weights)

        update(MetricKeys.LOSS_MEAN, losses)
        update(MetricKeys.AUC, labels, probabilities)
        update(MetricKeys.AUC_PR, labels, probabilities)
        for threshold in self._thresholds:
            positive = tf.cast(probabilities > threshold, tf.float32)
            update(MetricKeys.ACCURACY_AT_THRESHOLD.format(threshold), labels, positive)
            update(MetricKeys.PRECISION_AT_THRESHOLD.format(threshold), labels, positive)
            update(MetricKeys.RECALL_AT_THRESHOLD.format(threshold), labels, positive)
        for class_id, suffix in self._metric_classes.items():
            of_class = probabilities[..., class_id : class_id + 1]
            labels_of_class = labels[..., class_id : class_id + 1]
            update(f"{MetricKeys.PROBABILITY_MEAN}/{suffix}", of_class)
            update(f"{MetricKeys.AUC}/{suffix}", labels_of_class, of_class)
            update(f"{MetricKeys.AUC_PR}/{suffix}", labels_of_class, of_class)
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


def _metric_classes(
    classes: Sequence[int | str] | None, n_classes: int, label_vocabulary: Sequence[str] | None
) -> dict[int, str]:
    """Returns, by class id, how the keys of a class's own metrics end.

    Raises:
        ValueError: An id or a word is no class.
    """
    found: dict[int, str] = {}
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
        found[class_id] = (
            f"class{class_id}" if label_vocabulary is None else label_vocabulary[class_id]
        )
    return found
