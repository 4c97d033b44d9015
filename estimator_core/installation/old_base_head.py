"""The functions of tensorflow_estimator's base_head, which the heads of programs call.

They cover what our own heads use. Most are in canned.head as well, with an underscore before the name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.heads import checks, class_predictions
from estimator_core.heads import metrics as metrics_lib
from estimator_core.heads.assertions import assertion
from estimator_core.heads.base import as_metric_op, head_train_op, write_loss_summaries
from estimator_core.heads.class_predictions import LabelVocabulary
from estimator_core.heads.loss_reduction import LossReduction, check_loss_reduction
from estimator_core.keras_in_graph import keras_optimizers
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE
from estimator_core.spec.export_outputs import ClassificationOutput
from estimator_core.spec.keys import SignatureKeys

DEFAULT_SERVING_KEY = DEFAULT_SERVING_SIGNATURE
CLASSIFY_SERVING_KEY = SignatureKeys.CLASSIFICATION
REGRESS_SERVING_KEY = SignatureKeys.REGRESSION
PREDICT_SERVING_KEY = SignatureKeys.PREDICT

_LABEL_NONE_ERR_MSG = "You must provide a labels Tensor, but labels is None."


def check_logits_final_dim(logits: Any, expected_logits_dimension: int) -> tf.Tensor:
    """Returns logits as float32 `[..., expected_logits_dimension]`; see `checked_logits`."""
    return checks.checked_logits(logits, expected_logits_dimension)


def check_dense_labels_match_logits_and_reshape(
    labels: Any, logits: Any, expected_labels_dimension: int
) -> tf.Tensor:
    """Returns labels with the shape of the logits but the last dimension; see `checked_labels`."""
    return checks.checked_labels(labels, logits, expected_labels_dimension)


def get_weights_and_check_match_logits(
    features: Any, weight_column: Any, logits: tf.Tensor, allow_per_logit_weights: bool = False
) -> Any:
    """Returns the weights of a batch, `[..., 1]`, or the logits' shape if that is allowed; else 1.0."""
    checks.check_weight_column(weight_column)
    values = logits if allow_per_logit_weights else logits[..., :1]
    return checks.checked_weights(features, weight_column, values)


def check_label_range(labels: tf.Tensor, n_classes: int, message: str | None = None) -> tf.Tensor:
    """Returns the labels, checked to be from 0 to n_classes - 1; a graph checks them when it runs.

    `message`: text of the error; None is a default one.
    """
    message = message or f"Labels must be >= 0 and <= n_classes - 1 ({n_classes - 1})."
    labels = tf.convert_to_tensor(labels)
    in_range = tf.reduce_all((labels >= 0) & (labels <= n_classes - 1))
    with tf.control_dependencies(assertion(in_range, message, labels)):
        return tf.identity(labels)


def check_prediction_keys(pred_keys: Sequence[str], valid_keys: Sequence[str]) -> None:
    class_predictions.wanted(pred_keys, tuple(valid_keys))


def validate_loss_fn_args(loss_fn: Callable[..., Any]) -> None:
    """Checks that a loss function takes `labels` and `logits`, and no unknown arguments."""
    checks.check_loss_fn(loss_fn)


def validate_loss_reduction(loss_reduction: str) -> None:
    """Checks that a reduction is known and gives a scalar."""
    check_loss_reduction(loss_reduction)


def validate_update_ops(update_ops: Any = None) -> None:
    """Checks that update ops are a list or tuple, or None."""
    if update_ops is not None and not isinstance(update_ops, (list, tuple)):
        raise ValueError(f"update_ops must be a list or a tuple. Received: {update_ops!r}")


def validate_v2_optimizer(optimizer: Any) -> None:
    """Checks that an optimizer is one of Keras."""
    if not keras_optimizers.is_keras_optimizer(optimizer):
        raise ValueError(f"The given optimizer is not a Keras optimizer. Received: {optimizer!r}")


def validate_trainable_variables(trainable_variables: Any = None) -> None:
    """Checks that trainable variables are a list or tuple."""
    if not isinstance(trainable_variables, (list, tuple)):
        raise ValueError(f"trainable_variables must be a list or a tuple. Received: {trainable_variables!r}")


def validate_n_classes(n_classes: Any) -> Any:
    """Returns a number of classes above 2, or a tensor of one."""
    number = checks.static_n_classes(n_classes)
    if number is None or number <= 2:
        raise ValueError(f"n_classes must be > 2. Received: n_classes={n_classes}")
    return n_classes


def call_loss_fn(
    loss_fn: Callable[..., Any], labels: Any, logits: tf.Tensor, features: Any, expected_loss_dim: int = 1
) -> tf.Tensor:
    """Returns the unreduced loss of a loss function; see `checks.call_loss_fn`."""
    return checks.call_loss_fn(loss_fn, labels, logits, features, expected_loss_dim, "none")


def all_class_ids(logits: tf.Tensor, n_classes: int) -> tf.Tensor:
    """Returns the ids 0 to n_classes - 1 for each example, int32 `[batch_size, n_classes]`."""
    return class_predictions.all_class_ids(logits, n_classes)


def all_classes(
    logits: tf.Tensor, n_classes: int, label_vocabulary: Sequence[str] | None = None
) -> tf.Tensor:
    """Returns the names of all classes for each example, string `[batch_size, n_classes]`."""
    return class_predictions.all_class_names(logits, n_classes, _vocabulary(label_vocabulary, n_classes))


def classification_output(
    scores: tf.Tensor, n_classes: int, label_vocabulary: Sequence[str] | None = None
) -> ClassificationOutput:
    """Returns the classify signature of scores, `[batch_size, n_classes]`."""
    return ClassificationOutput(scores=scores, classes=all_classes(scores, n_classes, label_vocabulary))


def _vocabulary(labels: Sequence[str] | None, n_classes: int) -> LabelVocabulary | None:
    return None if labels is None else LabelVocabulary(labels, n_classes)


def update_metric_with_broadcast_weights(eval_metric: Any, values: Any, weights: Any) -> None:
    """Adds values to a metric, with weights that broadcast to their shape."""
    metrics_lib.update(eval_metric, values, sample_weight=weights)


def create_eval_metrics_tuple(
    fn: Callable[..., Mapping[str, Any]], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., dict[str, Any]], dict[str, Any]]:
    """Returns the `eval_metrics` of a `TPUEstimatorSpec`.

    `kwargs`: arguments of the function; those that are not tensors are bound to it.
    """
    tensors = {name: value for name, value in kwargs.items() if tf.is_tensor(value)}
    bound = {name: value for name, value in kwargs.items() if name not in tensors}

    def metric_fn(**tensors: Any) -> dict[str, Any]:
        found = fn(**bound, **tensors)
        return {name: as_metric_op(metric) for name, metric in found.items()}

    return metric_fn, tensors


def create_estimator_spec_train_op(
    head_name: str | None,
    optimizer: Any = None,
    trainable_variables: Sequence[Any] | None = None,
    train_op_fn: Callable[[Any], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    regularized_training_loss: Any = None,
    loss_reduction: str = LossReduction.SUM_OVER_BATCH_SIZE,
) -> Any:
    """Returns the operation of a training step; see `head_train_op`."""
    del head_name
    return head_train_op(
        regularized_training_loss, loss_reduction, optimizer, trainable_variables, train_op_fn, update_ops
    )


def create_estimator_spec_summary(
    regularized_training_loss: Any,
    regularization_losses: Sequence[Any] | None = None,
    summary_key_fn: Callable[[str], str] | None = None,
) -> None:
    """Adds the scalar summaries of a training loss; see `write_loss_summaries`."""
    write_loss_summaries(regularized_training_loss, regularization_losses, summary_key_fn)


def _append_update_ops(train_op: Any) -> Any:
    """Returns an op that runs both `train_op` and the graph's `UPDATE_OPS`."""
    update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    return tf.group(train_op, *update_ops) if update_ops else train_op
