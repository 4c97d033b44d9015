"""A receiver of raw columns as tensors, beside serialized tf.Examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.export.receivers import ServingInputReceiver, op_name
from estimator_core.export.saved_model import SERVING_ROWS

# Mark of a missing value by type: JSON and tensors have no other.
_MISSING = {tf.float32: float("nan"), tf.int64: tf.int64.min, tf.string: ""}


def build_rows_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any],
) -> Callable[[], ServingInputReceiver]:
    """Returns a `serving_input_receiver_fn` for serialized tf.Examples and for raw columns as tensors.

    The model has all signatures that `build_parsing_serving_input_receiver_fn` gives it, and `serving_rows`,
    whose inputs are the features by name, each `[batch_size]`, and whose outputs are the predictions. With
    it, a client of TensorFlow Serving sends rows as JSON, without tf.Examples:

        {"signature_name": "serving_rows", "instances": [{"fare": 12.5, "company": "Prairie Cab"}]}

    A missing value is NaN for a float, the smallest int64 for a whole number, and "" for text.

    Args:
        feature_spec: Dict of feature name to `tf.io.VarLenFeature` with at most one value, or to
            `tf.io.FixedLenFeature` of shape [] or [1]; of float32, int64 or string. A missing value of the
            latter is its default; without one, its mark reaches the model.

    Raises:
        ValueError: A feature is of another kind.

    Example:
        def serving_input_receiver_fn():
            raw = build_rows_serving_input_receiver_fn(raw_feature_spec)()
            features = transform_output.transform_raw_features(raw.features)
            return raw.with_features(features)
    """
    for name, kind in feature_spec.items():
        is_one_value = isinstance(kind, tf.io.VarLenFeature) or (
            isinstance(kind, tf.io.FixedLenFeature) and list(kind.shape) in ([], [1])
        )
        if not is_one_value or kind.dtype not in _MISSING:
            raise ValueError(
                "A column of rows is a VarLenFeature, or a FixedLenFeature of shape [] or [1], of float32, "
                f"int64 or string. Received: {name!r}: {kind!r}"
            )

    def serving_input_receiver_fn() -> ServingInputReceiver:
        # Either input is empty unless it is fed, and the batch is the rows of both.
        serialized = tf1.placeholder_with_default(
            tf.constant([], tf.string), [None], name="input_example_tensor"
        )
        parsed = tf.io.parse_example(serialized=serialized, features=dict(feature_spec))
        rows = {
            name: tf1.placeholder_with_default(
                tf.constant([], kind.dtype), [None], name=op_name(name)
            )
            for name, kind in feature_spec.items()
        }
        features = {
            name: _with_rows(parsed[name], rows[name], kind) for name, kind in feature_spec.items()
        }
        return ServingInputReceiver(features, {"examples": serialized}, {SERVING_ROWS: rows})

    return serving_input_receiver_fn


def _with_rows(parsed: Any, rows: Any, kind: Any) -> Any:
    """Returns a parsed feature, followed by the values of rows `[batch_size]`."""
    if kind.dtype.is_floating:
        is_known = tf.logical_not(tf.math.is_nan(rows))
    else:
        is_known = tf.not_equal(rows, _MISSING[kind.dtype])
    if isinstance(kind, tf.io.FixedLenFeature):
        if kind.default_value is not None:
            default = tf.reshape(tf.cast(kind.default_value, kind.dtype), [])
            rows = tf.where(is_known, rows, default)
        return tf.concat([parsed, tf.reshape(rows, [-1, *kind.shape])], axis=0)
    positions = tf.where(is_known)  # [num_known, 1]
    known = tf.SparseTensor(
        tf.pad(positions, [[0, 0], [0, 1]]),
        tf.gather_nd(rows, positions),
        tf.stack([tf.size(rows, tf.int64), 1]),
    )
    return tf.sparse.concat(0, [parsed, known], expand_nonconcat_dims=True)
