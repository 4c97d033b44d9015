"""Checks of labels, logits and weights; their errors name the tensor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.heads.assertions import assertion, with_checked_shape
from estimator_core.heads.class_predictions import LabelVocabulary


def static_n_classes(n_classes: Any) -> Any:
    """Returns a number of classes; of a tensor its value, which must be known while the graph is built."""
    if not tf.is_tensor(n_classes):
        return n_classes
    value = tf.get_static_value(n_classes)
    if value is None:
        raise ValueError(
            "n_classes must be a number, or a tensor whose value is known before the graph runs. "
            f"Received: n_classes={n_classes}"
        )
    return int(value)


def checked_logits(logits: Any, logits_dimension: int) -> tf.Tensor:
    """Returns logits as float32 `[..., logits_dimension]`.

    Unknown parts of their shape are checked when the graph runs.
    """
    if logits is None:
        raise ValueError("logits must not be None: the model has to produce a Tensor.")
    logits = tf.cast(logits, tf.float32)
    is_vector = logits.shape.rank is not None and logits.shape.rank < 2
    required = (
        "logits shape must be [D0, D1, ... DN, logits_dimension] with logits_dimension="
        f"{logits_dimension}. Received: logits with shape"
    )
    if is_vector or not logits.shape[-1:].is_compatible_with([logits_dimension]):
        raise ValueError(f"{required} {logits.shape}")
    if logits.shape.rank is not None and logits.shape[-1] is not None:
        return logits
    shape = tf.shape(logits)
    fits = (tf.size(shape) > 1) & tf.reduce_all(tf.equal(shape[-1:], logits_dimension))
    with tf.control_dependencies(assertion(fits, required, shape)):
        return tf.identity(logits)


def checked_labels(labels: Any, logits: tf.Tensor, labels_dimension: int) -> tf.Tensor:
    """Returns labels with the shape of the logits, except for the last dimension.

    `labels`: `[D0, ... DN, labels_dimension]`; a last dimension of 1 may be missing.
    `logits`: `[D0, ... DN, logits_dimension]`.
    """
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor, but labels is None. Check that input_fn returns "
            "(features, labels) and that the data holds the label."
        )
    if isinstance(labels, Mapping):
        raise ValueError(
            f"labels must be one Tensor; this head takes no dict. Received: keys {sorted(labels)}"
        )
    if isinstance(labels, tf.SparseTensor):
        raise ValueError(f"labels must be dense; use tf.sparse.to_dense. Received: labels={labels}")
    labels = tf.convert_to_tensor(labels)
    rank = labels.shape.rank
    if labels_dimension == 1 and rank is not None and rank == (logits.shape.rank or 2) - 1:
        labels = tf.expand_dims(labels, -1)
    if not labels.shape[-1:].is_compatible_with([labels_dimension]):
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={labels_dimension}. Received: "
            f"labels with shape {labels.shape}. A classifier takes class ids, not one-hot vectors; "
            "n_classes and label_dimension say how many there are."
        )
    if not labels.shape[:-1].is_compatible_with(logits.shape[:-1]):
        raise ValueError(
            "labels and logits must have the same batch shape. Received: labels with shape "
            f"{labels.shape}, logits with shape {logits.shape}"
        )
    return _labels_of_shape(labels, logits, labels_dimension)


def _labels_of_shape(labels: tf.Tensor, logits: tf.Tensor, labels_dimension: int) -> tf.Tensor:
    """Returns the labels; unknown parts of the shapes are checked when the graph runs."""
    batch_shape = logits.shape[:-1]
    if labels.shape.is_fully_defined() and batch_shape.is_fully_defined():
        return labels
    wanted = _with_last_dimension(logits, labels_dimension)
    static_shape = batch_shape.concatenate(labels_dimension)
    accepted = [(wanted, static_shape)]
    if labels_dimension == 1 and labels.shape.rank is None:
        accepted.append((wanted[:-1], batch_shape))
    labels = with_checked_shape(
        labels,
        accepted,
        f"labels must have the shape of the logits, with {labels_dimension} as its last dimension; "
        "reshape them in input_fn.",
        "logits",
        logits,
    )
    if labels.shape.rank is None:
        labels = tf.reshape(labels, wanted)
    labels.set_shape(static_shape)
    return labels


def _with_last_dimension(tensor: tf.Tensor, last_dimension: int) -> tf.Tensor:
    """Returns the shape as a tensor, `[D0, ... DN, last_dimension]`."""
    shape = tf.shape(tensor)
    if tensor.shape.rank is not None and tensor.shape[-1] == last_dimension:
        return shape
    return tf.concat([shape[:-1], [last_dimension]], axis=0)


def checked_class_ids(labels: tf.Tensor, n_classes: int, vocabulary: LabelVocabulary | None) -> tf.Tensor:
    """Returns labels as class ids in [0, n_classes), checked when the graph runs."""
    if vocabulary is not None:
        if labels.dtype != tf.string:
            raise ValueError(
                f"Labels dtype should be string, since there is a label_vocabulary. Received: labels={labels}"
            )
        class_ids = vocabulary.ids(labels)
        message = f"Labels must be in label_vocabulary {vocabulary}. Received labels:"
    else:
        if not (labels.dtype.is_integer or labels.dtype.is_floating or labels.dtype == tf.bool):
            raise ValueError(
                "Labels dtype should be integer; string labels need a label_vocabulary. "
                f"Received: labels={labels}"
            )
        class_ids = tf.cast(labels, tf.int32) if labels.dtype == tf.bool else labels
        message = f"Labels must be >= 0 and <= n_classes - 1 ({n_classes - 1}). Received labels:"
    in_range = tf.reduce_all((class_ids >= 0) & (class_ids <= n_classes - 1))
    with tf.control_dependencies(assertion(in_range, message, labels)):
        return tf.identity(class_ids, name="class_ids")


def checked_weights(features: Any, weight_column: Any, loss: tf.Tensor) -> Any:
    """Returns the weights of a batch, `[batch_size, 1]` or the loss's shape; 1.0 without a column.

    `loss`: float32 `[batch_size, any]`, losses to weigh.
    """
    if weight_column is None:
        return 1.0
    key = weight_column if isinstance(weight_column, str) else weight_column.key
    if not isinstance(features, Mapping) or key not in features:
        names = sorted(map(str, features)) if isinstance(features, Mapping) else features
        raise ValueError(f"Feature {key} (weight_column) is not in features dictionary. Received: {names}")
    weights = features[key]
    if isinstance(weights, tf.SparseTensor):
        raise ValueError(f"The weight_column {key} must be dense. Received: {weights}")
    weights = tf.convert_to_tensor(weights)
    if not (weights.dtype.is_floating or weights.dtype.is_integer):
        raise ValueError(f"The weight_column {key} must be numeric. Received: {weights}")
    weights = tf.cast(weights, tf.float32)
    normalizer_fn = getattr(weight_column, "normalizer_fn", None)
    if normalizer_fn is not None:
        weights = tf.cast(normalizer_fn(weights), tf.float32)
    if weights.shape.rank is not None and weights.shape.rank == (loss.shape.rank or 2) - 1:
        weights = tf.expand_dims(weights, -1)
    one_for_each = loss.shape[:-1].concatenate(1)
    if not any(map(weights.shape.is_compatible_with, (one_for_each, loss.shape))):
        raise ValueError(
            f"The weight_column {key} can not be broadcast to the losses of shape {loss.shape}. "
            f"Received: weights with shape {weights.shape}"
        )
    if weights.shape.is_fully_defined() and loss.shape.is_fully_defined():
        return weights
    accepted = [(tf.shape(loss), loss.shape)]
    if loss.shape.rank is None or loss.shape[-1] != 1:
        accepted.append((_with_last_dimension(loss, 1), one_for_each))
    return with_checked_shape(
        weights,
        accepted,
        f"The weight_column {key} must have one weight for each loss, or one for each example as "
        "[batch_size, 1]; reshape it in input_fn.",
        "losses",
        loss,
    )


def check_weight_column(weight_column: Any) -> Any:
    """Returns `weight_column` if it is a name, a numeric column or None."""
    is_numeric_column = hasattr(weight_column, "key") and hasattr(weight_column, "normalizer_fn")
    if weight_column is None or isinstance(weight_column, str) or is_numeric_column:
        return weight_column
    raise TypeError(
        "weight_column must be a feature name or a tf.feature_column.numeric_column. "
        f"Received: weight_column={weight_column!r}"
    )


def call_loss_fn(
    loss_fn: Callable[..., Any],
    labels: tf.Tensor,
    logits: tf.Tensor,
    features: Any,
    expected_last_dimension: int,
    loss_reduction: str,
) -> tf.Tensor:
    """Returns the user's unreduced loss, float32 `[D0, ... DN, expected_last_dimension]`."""
    arguments = inspect.signature(loss_fn).parameters
    optional = {"features": features, "loss_reduction": loss_reduction}
    extra = {key: value for key, value in optional.items() if key in arguments}
    loss = loss_fn(labels=labels, logits=logits, **extra)
    loss = tf.convert_to_tensor(loss)
    expected = logits.shape[:-1].concatenate(expected_last_dimension)
    if not loss.shape.is_compatible_with(expected):
        raise ValueError(
            f"loss_fn must return losses of shape {expected}, one for each example (and label "
            f"dimension); no mean, no sum. Received: {loss}"
        )
    if not (loss.shape.is_fully_defined() and expected.is_fully_defined()):
        loss = with_checked_shape(
            loss,
            [(_with_last_dimension(logits, expected_last_dimension), expected)],
            "loss_fn must return a loss for each example (and label dimension); no mean, no sum.",
            "logits",
            logits,
        )
        loss.set_shape(expected)
    return loss


def check_loss_fn(loss_fn: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Returns `loss_fn` if it takes `labels`, `logits`, and no unknown arguments."""
    if loss_fn is None:
        return None
    if not callable(loss_fn):
        raise TypeError(f"loss_fn must be a function. Received: loss_fn={loss_fn!r}")
    arguments = inspect.signature(loss_fn).parameters
    allowed: Sequence[str] = ("labels", "logits", "features", "loss_reduction")
    missing = [name for name in allowed[:2] if name not in arguments]
    unknown = [name for name in arguments if name not in allowed]
    if missing or unknown:
        raise ValueError(
            f"loss_fn must contain arguments: labels, logits; and may contain features, "
            f"loss_reduction. Received: loss_fn with arguments {tuple(arguments)}"
        )
    return loss_fn
