"""The model_fn of a linear model that LinearSDCA trains."""

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
from estimator_core.logits import linear_logit_fn_builder
from estimator_core.sdca.example_state import ExampleStates
from estimator_core.sdca.examples import (
    Examples,
    features_with_weights,
    with_probabilities_as_weights,
)
from estimator_core.sdca.linear_sdca import LinearSDCA
from estimator_core.sdca.minimize import minimize
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys

# The first that fits: the special regressions are regressions too.
_LOSS_TYPES: tuple[tuple[type[Head], str], ...] = (
    (BinaryClassHead, "logistic_loss"),
    (LogisticRegressionHead, "logistic_loss"),
    (PoissonRegressionHead, "poisson_loss"),
    (RegressionHead, "squared_loss"),
)


def sdca_model_fn(
    head: Head, feature_columns: Sequence[Any], sdca: LinearSDCA, sparse_combiner: str = "sum"
) -> Callable[..., EstimatorSpec]:
    """Returns the `model_fn` of a linear model that `sdca` trains.

    Args:
        head: A head with one logit: binary, logistic, Poisson or least squares.
        feature_columns: Categorical and dense columns, by name.
        sdca: The optimizer.
        sparse_combiner: Must be "sum".

    Raises:
        ValueError: SDCA can't train such a model.
    """
    check_trainable(head, sparse_combiner)
    logit_fn = linear_logit_fn_builder(head.logits_dimension, feature_columns)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if not isinstance(features, Mapping):
            raise ValueError(
                "features should be a dictionary of `Tensor`s, by feature name. "
                f"Received: features={features!r}"
            )
        logits = logit_fn(features, mode)
        train_op_fn = None
        if mode == ModeKeys.TRAIN:
            train_op_fn = sdca_train_op_fn(
                sdca, feature_columns, head, features, labels, logits, model_scope="linear"
            )
        return head.create_estimator_spec(
            features, mode, logits=logits, labels=labels, train_op_fn=train_op_fn
        )

    return model_fn


def check_trainable(head: Head, sparse_combiner: str) -> None:
    """Checks that SDCA can train the linear model of such a head.

    Raises:
        ValueError: It can't.
    """
    _loss_type(head)
    if sparse_combiner != "sum":
        raise ValueError(
            'sparse_combiner must be "sum" when optimizer is a LinearSDCA object. '
            f"Received: sparse_combiner={sparse_combiner!r}"
        )


def sdca_train_op_fn(
    sdca: LinearSDCA,
    feature_columns: Sequence[Any],
    head: Head,
    features: Mapping[str, Any],
    labels: Any,
    logits: tf.Tensor,
    model_scope: str | None = None,
    summary_scope: str | None = None,
) -> Callable[[tf.Tensor], tf.Operation]:
    """Returns the function from the loss to the op of one training step.

    Args:
        sdca: The optimizer.
        feature_columns: Categorical and dense columns, by name.
        head: The head of the model.
        features: Dict of feature name to `Tensor` or `SparseTensor`, `[batch_size, ...]`.
        labels: Labels of the batch.
        logits: `[batch_size, 1]`.
        model_scope: Variable scope, below the current one, in which the linear model was built; None
            means the current one.
        summary_scope: What the tags of summaries begin with; None is nothing.

    Raises:
        ValueError: The model is split over replicas, or a column can't be trained.
        KeyError: There is no feature of example ids.
        TypeError: The example ids are no strings.
    """
    _check_one_replica()
    with tf1.variable_scope(model_scope) if model_scope else contextlib.nullcontext():
        examples = _examples(head, features, labels, logits, feature_columns, sdca)
    states = ExampleStates(sdca.num_table_shards or 1)

    def train_op_fn(loss: tf.Tensor) -> tf.Operation:
        return minimize(sdca, _loss_type(head), examples, states, loss, summary_scope)

    return train_op_fn


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


def _check_one_replica() -> None:
    num_replicas = current_execution().num_replicas
    if num_replicas > 1:
        raise ValueError(
            "LinearSDCA can't be split over the replicas of a tf.distribute.Strategy: train it on one "
            f"device, or on parameter servers. Received: {num_replicas} replicas"
        )


def _examples(
    head: Any,
    features: Mapping[str, Any],
    labels: Any,
    logits: tf.Tensor,
    feature_columns: Sequence[Any],
    sdca: LinearSDCA,
) -> Examples:
    """Returns the batch, its labels and weights as the head reads them."""
    if sdca.example_id_column not in features:
        raise KeyError(
            f"LinearSDCA needs the feature {sdca.example_id_column!r}, its example_id_column, in what "
            f"input_fn gives. Received: {sorted(features)}"
        )
    ids = tf.convert_to_tensor(features[sdca.example_id_column])
    if ids.dtype != tf.string:
        raise TypeError(
            f"The example_id_column {sdca.example_id_column!r} must hold strings; tf.as_string makes "
            f"them of numbers. Received: {ids}"
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
