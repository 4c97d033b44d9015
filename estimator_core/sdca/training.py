"""Training of a linear model by LinearSDCA."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.heads import (
    BinaryClassHead,
    Head,
    LogisticRegressionHead,
    MultiClassHead,
    PoissonRegressionHead,
    RegressionHead,
)
from estimator_core.sdca.examples import Examples, features_with_weights, with_probabilities_as_weights
from estimator_core.sdca.linear_sdca import LinearSDCA
from estimator_core.sdca.minimize import ExampleStates, minimize

# The first match counts: the special regressions are subclasses of RegressionHead.
_LOSS_TYPES: tuple[tuple[type[Head], str], ...] = (
    (BinaryClassHead, "logistic_loss"),
    (LogisticRegressionHead, "logistic_loss"),
    (PoissonRegressionHead, "poisson_loss"),
    (RegressionHead, "squared_loss"),
)


class SdcaTraining:
    """Training of a linear model by SDCA, for `compose`: the optimizers of its parts are not used.

    `sparse_combiner`: reduction of several values in one column; must be "sum".
    `model_scope`: variable scope of the linear model, below the current one; None means the current one.
    `summary_scope`: prefix of the tags of summaries; None means none.
    """

    def __init__(
        self,
        sdca: LinearSDCA,
        head: Head,
        feature_columns: Sequence[Any],
        sparse_combiner: str = "sum",
        model_scope: str | None = None,
        summary_scope: str | None = None,
    ):
        if sparse_combiner != "sum":
            raise ValueError(
                'sparse_combiner must be "sum" when optimizer is a LinearSDCA object. '
                f"Received: sparse_combiner={sparse_combiner!r}"
            )
        self._sdca = sdca
        self._loss_type = _loss_type(head)
        self._columns = feature_columns
        self._model_scope = model_scope
        self._summary_scope = summary_scope

    def train_op_fn(self, model: Any) -> Callable[[tf.Tensor], tf.Operation]:
        """Returns the function from the loss to the op of one training step."""
        num_replicas = current_execution().num_replicas
        if num_replicas > 1:
            raise ValueError(
                "LinearSDCA can't be split over the replicas of a tf.distribute.Strategy: train it on one "
                f"device, or on parameter servers. Received: {num_replicas} replicas"
            )
        with tf1.variable_scope(self._model_scope) if self._model_scope else contextlib.nullcontext():
            examples = _examples(
                model.head, model.features, model.labels, model.logits, self._columns, self._sdca
            )
        states = ExampleStates(self._sdca.num_table_shards or 1)

        def train_op(loss: tf.Tensor) -> tf.Operation:
            return minimize(self._sdca, self._loss_type, examples, states, loss, self._summary_scope)

        return train_op


def _loss_type(head: Any) -> str:
    if isinstance(head, MultiClassHead):
        raise ValueError(f"LinearSDCA cannot be used in a multi-class setting. Received: {head!r}")
    loss_type = next((name for kind, name in _LOSS_TYPES if isinstance(head, kind)), None)
    if loss_type is None:
        kinds = [kind.__name__ for kind, _ in _LOSS_TYPES]
        raise ValueError(
            f"Unsupported head type for LinearSDCA: it must be one of {kinds}. Received: {head!r}"
        )
    if head.logits_dimension != 1:
        raise ValueError(
            "LinearSDCA can only be used with one-dimensional label. "
            f"Received: label_dimension={head.logits_dimension}"
        )
    return loss_type


def _examples(
    head: Any,
    features: Mapping[str, Any],
    labels: Any,
    logits: tf.Tensor,
    feature_columns: Sequence[Any],
    sdca: LinearSDCA,
) -> Examples:
    """Returns the batch, with labels and weights processed by the head."""
    if sdca.example_id_column not in features:
        raise KeyError(
            f"LinearSDCA needs the feature {sdca.example_id_column!r}, its example_id_column, from "
            f"input_fn. Received: {sorted(features)}"
        )
    ids = tf.convert_to_tensor(features[sdca.example_id_column])
    if ids.dtype != tf.string:
        raise TypeError(
            f"The example_id_column {sdca.example_id_column!r} must hold strings; use tf.as_string for "
            f"numbers. Received: {ids}"
        )
    labels = head.processed_labels(labels, logits)
    weights = head.example_weights(features, labels)
    sparse, dense = features_with_weights(features, feature_columns, tf.shape(logits)[0])
    examples = Examples(
        ids=tf.reshape(ids, [-1]),
        labels=tf.reshape(labels, [-1]),
        example_weights=tf.reshape(tf.broadcast_to(weights, tf.shape(labels)), [-1]),
        sparse=sparse,
        dense=dense,
    )
    if isinstance(head, LogisticRegressionHead):
        return with_probabilities_as_weights(examples)
    return examples
