"""The heads of TensorFlow 1 in tensorflow_estimator's canned.head, which programs use and subclass.

A subclass may override `create_loss`, `_eval_metric_ops`, `_create_tpu_estimator_spec` or
`create_estimator_spec`, as in 2.15.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.base import as_metric_op, head_train_op, write_loss_summaries, write_summary
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.checks import checked_class_ids, checked_logits
from estimator_core.heads.loss_reduction import LossReduction, check_loss_reduction, reduce_loss
from estimator_core.heads.weighted import WeightedHead
from estimator_core.installation.old_base_head import create_eval_metrics_tuple
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.keys import MetricKeys, PredictionKeys
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.tpu import TPUEstimatorSpec
from estimator_core.v1.heads import CannedBinaryClassHead, CannedMultiClassHead, CannedRegressionHead

_NONE = "none"  # of tf.compat.v1.losses.Reduction; for subclasses that reduce the losses themselves


class LossSpec(NamedTuple):
    """The losses of a batch."""

    training_loss: Any
    unreduced_loss: Any  # Losses of the examples, without weights
    weights: Any  # Weights that broadcast to the losses
    processed_labels: Any


class _Head:
    """Base class of TensorFlow 1's heads.

    A subclass defines `name`, `logits_dimension`, `create_loss` and one of the two methods that make a spec.
    """

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        """Returns the losses of a batch."""
        raise NotImplementedError("Calling an abstract method.")

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """Returns the `EstimatorSpec` of a model that ends in this head.

        `logits`: `[batch_size, logits_dimension]`.
        `labels`: labels of the batch; needed in TRAIN and EVAL.
        `train_op_fn`: function from the loss to a train op, instead of `optimizer`.
        """
        return self._create_tpu_estimator_spec(
            features, mode, logits, labels, optimizer, train_op_fn, regularization_losses
        ).as_estimator_spec()

    def _create_tpu_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> TPUEstimatorSpec:
        raise NotImplementedError(
            "A head must define create_estimator_spec or _create_tpu_estimator_spec. Received: "
            f"{type(self).__name__}"
        )


# The arguments are those of 2.15's heads.
class _OldWeightedHead(_Head, WeightedHead):  # type: ignore[misc]
    """Gives our weighted heads the methods of 2.15's."""

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        """Returns the losses of a batch."""
        del mode
        logits = checked_logits(logits, self.logits_dimension)
        labels = self.processed_labels(labels, logits)
        losses = self.unreduced_losses(labels, logits, features)
        weights = self.example_weights(features, losses)
        if self.loss_reduction == _NONE:
            return LossSpec(losses * weights, losses, weights, labels)
        loss = reduce_loss(losses, weights, self.loss_reduction)
        return LossSpec(loss, losses, weights, labels)

    @abc.abstractmethod
    def _metric_arguments(self, loss: LossSpec, logits: Any, predictions: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of `_eval_metric_ops`, without those of the losses."""

    def _create_tpu_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> TPUEstimatorSpec:
        with tf.name_scope(self.name or "head"):
            logits = checked_logits(logits, self.logits_dimension)
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self.export_outputs(predictions)
                return TPUEstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
            spec = self.create_loss(features=features, mode=mode, logits=logits, labels=labels)
            loss = spec.training_loss
            regularization_loss = None
            if regularization_losses:
                regularization_loss = tf.add_n(list(regularization_losses))
                loss += regularization_loss
            if mode == ModeKeys.EVAL:
                arguments = self._metric_arguments(spec, logits, predictions)
                arguments["weights"] = spec.weights
                arguments["unreduced_loss"] = spec.unreduced_loss
                arguments["regularization_loss"] = regularization_loss
                if self.loss_reduction in LossReduction.SUMS:
                    loss = current_execution().whole_sum(loss)
                return TPUEstimatorSpec(
                    mode,
                    predictions=predictions,
                    loss=loss,
                    eval_metrics=create_eval_metrics_tuple(self._eval_metric_ops, arguments),
                )
            train_op = head_train_op(
                loss, self.loss_reduction, optimizer, train_op_fn=train_op_fn, scope=self.training_scope
            )
        write_loss_summaries(loss, regularization_losses, self._with_name)
        if self.loss_reduction in LossReduction.SUMS:
            weights = tf.cast(spec.weights, spec.unreduced_loss.dtype)
            mean = reduce_loss(spec.unreduced_loss, weights, LossReduction.WEIGHTED_MEAN)
            write_summary(self._with_name(MetricKeys.LOSS_MEAN), mean)
        return TPUEstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    @abc.abstractmethod
    def _eval_metric_ops(self, *arguments: Any, **others: Any) -> dict[str, Any]:
        """Returns metrics as (value, update_op), by key."""

    def _metric_ops(
        self, values: Iterable[tuple[Any, ...]], weights: Any, unreduced_loss: Any, regularization_loss: Any
    ) -> dict[str, Any]:
        losses = None if regularization_loss is None else [regularization_loss]
        found = self.update_with_batch(
            self.metrics(losses), values, unreduced_loss, weights, regularization_loss
        )
        return {key: as_metric_op(metric) for key, metric in found.items()}


def _scalar(loss_reduction: str) -> str:
    return LossReduction.WEIGHTED_SUM if loss_reduction == _NONE else loss_reduction


class _BinaryLogisticHeadWithSigmoidCrossEntropyLoss(_OldWeightedHead, CannedBinaryClassHead):  # type: ignore[misc]
    """Two classes, one logit."""

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        super().__init__(weight_column, thresholds, label_vocabulary, _scalar(loss_reduction), loss_fn, name)
        self._loss_reduction = loss_reduction

    def _metric_arguments(self, loss: LossSpec, logits: Any, predictions: dict[str, Any]) -> dict[str, Any]:
        return {
            "labels": loss.processed_labels,
            "logits": logits,
            "logistic": predictions[PredictionKeys.LOGISTIC],
            "class_ids": predictions[PredictionKeys.CLASS_IDS],
        }

    def _eval_metric_ops(
        self,
        labels: Any,
        logits: Any,
        logistic: Any,
        class_ids: Any,
        weights: Any,
        unreduced_loss: Any,
        regularization_loss: Any,
    ) -> dict[str, Any]:
        del logistic, class_ids
        values = self.metric_values(labels, logits)
        return self._metric_ops(values, weights, unreduced_loss, regularization_loss)


class _MultiClassHeadWithSoftmaxCrossEntropyLoss(_OldWeightedHead, CannedMultiClassHead):  # type: ignore[misc]
    """Three or more classes, with a logit for each."""

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        super().__init__(n_classes, weight_column, label_vocabulary, _scalar(loss_reduction), loss_fn, name)
        self._loss_reduction = loss_reduction

    # for subclasses; 2.15's heads have it
    def _label_ids(self, labels: Any) -> tf.Tensor:
        return checked_class_ids(tf.convert_to_tensor(labels), self._n_classes, self._vocabulary)

    def _metric_arguments(self, loss: LossSpec, logits: Any, predictions: dict[str, Any]) -> dict[str, Any]:
        return {"labels": loss.processed_labels, "class_ids": predictions[PredictionKeys.CLASS_IDS]}

    def _eval_metric_ops(
        self, labels: Any, class_ids: Any, weights: Any, unreduced_loss: Any, regularization_loss: Any
    ) -> dict[str, Any]:
        values = [(MetricKeys.ACCURACY, labels, class_ids)]
        return self._metric_ops(values, weights, unreduced_loss, regularization_loss)


class _RegressionHeadWithMeanSquaredErrorLoss(_OldWeightedHead, CannedRegressionHead):  # type: ignore[misc]
    """Labels are real numbers."""

    def __init__(
        self,
        label_dimension: int,
        weight_column: Any = None,
        loss_reduction: str = LossReduction.WEIGHTED_SUM,
        loss_fn: Callable[..., Any] | None = None,
        inverse_link_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        super().__init__(
            label_dimension, weight_column, _scalar(loss_reduction), loss_fn, inverse_link_fn, name
        )
        self._loss_reduction = loss_reduction
        # for subclasses; 2.15's heads have it
        self._logits_dimension = self._label_dimension

    def _metric_arguments(self, loss: LossSpec, logits: Any, predictions: dict[str, Any]) -> dict[str, Any]:
        return {"predicted_value": predictions[PredictionKeys.PREDICTIONS], "labels": loss.processed_labels}

    def _eval_metric_ops(
        self, predicted_value: Any, labels: Any, weights: Any, unreduced_loss: Any, regularization_loss: Any
    ) -> dict[str, Any]:
        values = [(MetricKeys.PREDICTION_MEAN, predicted_value), (MetricKeys.LABEL_MEAN, labels)]
        return self._metric_ops(values, weights, unreduced_loss, regularization_loss)


def _factory(kind: type[_OldWeightedHead]) -> Callable[..., _OldWeightedHead]:
    """Returns a function that makes a head, and refuses a loss reduction that gives no scalar."""

    def make_head(*args: Any, **kwargs: Any) -> _OldWeightedHead:
        head = kind(*args, **kwargs)
        check_loss_reduction(head.loss_reduction)
        return head

    make_head.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return make_head


_binary_logistic_head_with_sigmoid_cross_entropy_loss = _factory(
    _BinaryLogisticHeadWithSigmoidCrossEntropyLoss
)
_multi_class_head_with_softmax_cross_entropy_loss = _factory(_MultiClassHeadWithSoftmaxCrossEntropyLoss)


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = LossReduction.WEIGHTED_SUM,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> _OldWeightedHead:
    check_loss_reduction(loss_reduction)
    return _RegressionHeadWithMeanSquaredErrorLoss(
        label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name
    )


def _binary_logistic_or_multi_class_head(
    n_classes: int, weight_column: Any, label_vocabulary: Sequence[str] | None, loss_reduction: str
) -> Any:
    check_loss_reduction(loss_reduction)
    return binary_or_multi_class_head(
        n_classes,
        weight_column,
        label_vocabulary,
        loss_reduction,
        kinds=(_BinaryLogisticHeadWithSigmoidCrossEntropyLoss, _MultiClassHeadWithSoftmaxCrossEntropyLoss),
    )


# Metrics as (value, update_op).


def _summary_key(head_name: str | None, val: str) -> str:
    return f"{val}/{head_name}" if head_name else val


def _indicator_labels_mean(labels: Any, weights: Any = None, name: str | None = None) -> Any:
    return tf1.metrics.mean(tf.cast(labels, tf.float32), weights, name=name)


def _accuracy_baseline(labels_mean: tuple[Any, Any]) -> tuple[Any, Any]:
    """Returns the accuracy of always predicting the more frequent label, from the mean of labels."""
    value, update_op = labels_mean
    return tf.maximum(value, 1.0 - value), tf.maximum(update_op, 1.0 - update_op)


def _auc(
    labels: Any, predictions: Any, weights: Any = None, curve: str = "ROC", name: str | None = None
) -> Any:
    metric = metrics_lib.auc(name or "auc", curve, summation_method="trapezoidal")
    predictions = tf.cast(predictions, tf.float32)
    metrics_lib.update(metric, labels, predictions, sample_weight=weights)
    return as_metric_op(metric)
