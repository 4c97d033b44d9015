"""Assertions about the values of a batch: checked immediately in eager mode, else when the graph runs."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_SHOWN_VALUES = 20


def assertion(condition: tf.Tensor, message: str, *values: Any) -> list[Any]:
    """Returns the control inputs that assert a condition."""
    if tf.executing_eagerly():
        if not condition:
            raise ValueError(" ".join([message, *(_as_text(value) for value in values)]))
        return []
    # The raw op: tf.debugging.assert_* would wrap it in a conditional that costs more than the check.
    return [tf.raw_ops.Assert(condition=condition, data=[message, *values], summarize=_SHOWN_VALUES)]


def with_checked_shape(
    tensor: tf.Tensor,
    accepted: list[tuple[tf.Tensor, tf.TensorShape]],
    message: str,
    other_name: str,
    other: tf.Tensor,
) -> tf.Tensor:
    """Returns a tensor whose shape is checked when the graph runs, as far as it is unknown before.

    Different shapes would silently broadcast: `[1, batch_size]` and `[batch_size, 1]` to
    `[batch_size, batch_size]`.

    `tensor`: tensor whose static shape is compatible with an accepted one.
    `accepted`: pairs of an accepted shape as int32 vector, and its static part.
    `other_name`: name of the tensor that the shape must fit.
    """
    shape = tf.shape(tensor)
    fits = [
        _equal(shape, wanted)
        for wanted, static_shape in accepted
        if tensor.shape.is_compatible_with(static_shape)
    ]
    control_inputs = assertion(
        fits[0] if len(fits) == 1 else tf.reduce_any(fits),
        f"{message} Received: shape",
        shape,
        f"for {other_name} with shape",
        tf.shape(other),
    )
    with tf.control_dependencies(control_inputs):
        return tf.identity(tensor)


def _equal(shape: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """Returns whether two shapes are equal, a scalar bool."""
    if shape.shape.is_fully_defined() and wanted.shape.is_fully_defined():
        return tf.reduce_all(tf.equal(shape, wanted))
    # Two vectors of equal length, for any ranks: the comparison itself can't fail.
    equal = tf.equal(tf.concat([shape, wanted], axis=0), tf.concat([wanted, shape], axis=0))
    same_rank = tf.equal(tf.size(shape), tf.size(wanted))
    return tf.reduce_all(equal) & same_rank


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    values = tf.convert_to_tensor(value).numpy()
    flat = values.reshape(-1)
    shown = " ".join(str(item) for item in flat[:_SHOWN_VALUES])
    return f"[{shown}{' ...' if flat.size > _SHOWN_VALUES else ''}]"
