"""The heads of `tf.compat.v1.estimator`'s classifiers and regressors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.heads import BinaryClassHead, Head, MultiClassHead, RegressionHead
from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.base import write_summary
from estimator_core.heads.binary_or_multi_class import binary_or_multi_class_head
from estimator_core.heads.loss_reduction import LossReduction, reduce_loss
from estimator_core.heads.weighted import WeightedHead
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.keys import MetricKeys, PredictionKeys
from estimator_core.spec.mode_keys import ModeKeys

# Operation names of tf.estimator's canned models, by prediction key. Old programs log tensors by name.
_PREDICTIONS = {
    PredictionKeys.LOGISTIC: "logistic",
    PredictionKeys.PROBABILITIES: "probabilities",
    PredictionKeys.CLASSES: "str_classes",
    PredictionKeys.ALL_CLASS_IDS: "Tile",
    PredictionKeys.ALL_CLASSES: "Tile_1",
}
# The same for logits, by the name of the operation here.
_LOGITS = {
    "AddN": "add",
    "linear/linear_model/weighted_sum": "linear/linear_model/linear_model/linear_model/weighted_sum",
    "mul": "baseline/Mul",
}


class _CannedHead(WeightedHead):
    """Trains in the head's own name scope, and writes the mean loss as well if the loss is a sum.

    The name scope is the head's name, or "head". The mean per example is the summary "average_loss",
    or "average_loss/<name>".
    """

    _vocabulary: Any = None

    @property
    def training_scope(self) -> str:
        """Name scope of the training, within that of the current variable scope."""
        outer = tf1.get_variable_scope().name
        name = self.name or "head"
        # A name scope that ends in a slash is absolute.
        return f"{outer}/{name}/" if outer else f"{name}/"

    def _own_spec(
        self, features: Any, mode: str, logits: Any, labels: Any = None, *args: Any, **others: Any
    ) -> EstimatorSpec:
        spec = super()._own_spec(features, mode, logits, labels, *args, **others)
        aliases = self._aliases(spec)
        if mode == ModeKeys.TRAIN and self.loss_reduction in LossReduction.SUMS:
            with tf.name_scope("losses"):
                labels = self.processed_labels(labels, logits)
                losses = self.unreduced_losses(labels, logits, features)
                weights = self.example_weights(features, losses)
                mean = reduce_loss(losses, weights, LossReduction.WEIGHTED_MEAN)
            write_summary(self._with_name(MetricKeys.LOSS_MEAN), mean)
            aliases["truediv"] = mean
        # A mean divides this sum of the weighted losses.
        sums = {f"{self.name or 'head'}/losses/Sum": f"{self.training_scope}weighted_loss/Sum"}
        _add_names(aliases, self.training_scope, {**_LOGITS, **sums})
        return spec

    def _aliases(self, spec: EstimatorSpec) -> dict[str, Any]:
        """Returns the tensors by their names in tf.estimator, without the scope of the head."""
        aliases = {}
        predictions: dict[str, Any] = dict(spec.predictions)
        for key, name in _PREDICTIONS.items():
            if key in predictions:
                aliases[f"predictions/{name}"] = predictions[key]
        if PredictionKeys.CLASS_IDS in predictions:
            is_binary = PredictionKeys.LOGISTIC in predictions
            name = "ExpandDims" if is_binary else "ExpandDims_2"
            aliases[f"predictions/{name}"] = predictions[PredictionKeys.CLASS_IDS]
            aliases["predictions/class_ids"] = tf.squeeze(predictions[PredictionKeys.CLASS_IDS], -1)
        if PredictionKeys.CLASSES in predictions and self._vocabulary is not None:
            classes = aliases.pop("predictions/str_classes")
            aliases["predictions/hash_table_Lookup/LookupTableFindV2"] = classes
        if spec.loss is not None:
            is_sum = self.loss_reduction in LossReduction.SUMS
            aliases["weighted_loss/Sum" if is_sum else "weighted_loss/value"] = spec.loss
        return aliases


class CannedBinaryClassHead(_CannedHead, BinaryClassHead):
    """Sums the area under the precision-recall curve by trapezoids; the baseline without labels is 1."""

    def own_metrics(self) -> dict[str, metrics_lib.Metric]:
        """Returns fresh metrics by name; see `WeightedHead.own_metrics`."""
        return {
            **super().own_metrics(),
            MetricKeys.AUC_PR: metrics_lib.auc(MetricKeys.AUC_PR, curve="PR", summation_method="trapezoidal"),
            MetricKeys.ACCURACY_BASELINE: metrics_lib.GraphMetric(_accuracy_baseline),
        }


def _add_names(tensors: Mapping[str, Any], scope: str, others: Mapping[str, str]) -> None:
    """Adds operations with the given names in a scope, and `others`, by the name of the operation here."""
    graph = tf1.get_default_graph()
    outer = graph.get_name_scope()
    named = {f"{scope}{name}": tensor for name, tensor in tensors.items()}
    operations = {operation.name: operation for operation in graph.get_operations()}
    outer = f"{outer}/" if outer else ""
    for name, alias in others.items():
        if f"{outer}{name}" in operations:
            named.setdefault(alias, operations[f"{outer}{name}"].outputs[0])
    for name, tensor in named.items():
        if f"{outer}{name}" not in operations:
            tf.identity(tensor, name=name)


def _accuracy_baseline(labels: Any, weights: Any) -> tuple[Any, Any]:
    value, update_op = tf1.metrics.mean(
        tf.cast(labels, tf.float32), weights, name=MetricKeys.ACCURACY_BASELINE
    )
    return tf.maximum(value, 1.0 - value), tf.maximum(update_op, 1.0 - update_op)


class CannedMultiClassHead(_CannedHead, MultiClassHead):
    """A `MultiClassHead` that differs only in training."""


class CannedRegressionHead(_CannedHead, RegressionHead):
    """A `RegressionHead` that differs only in training."""


def classifier_head(
    n_classes: int, weight_column: Any, label_vocabulary: Sequence[str] | None, loss_reduction: str
) -> Head:
    if not isinstance(label_vocabulary, (list, tuple, type(None))):
        raise TypeError(f"label_vocabulary should be a list. Received: {label_vocabulary!r}")
    return binary_or_multi_class_head(
        n_classes,
        weight_column,
        label_vocabulary,
        loss_reduction,
        kinds=(CannedBinaryClassHead, CannedMultiClassHead),
    )


def regressor_head(label_dimension: int, weight_column: Any, loss_reduction: str) -> Head:
    return CannedRegressionHead(label_dimension, weight_column, loss_reduction)
