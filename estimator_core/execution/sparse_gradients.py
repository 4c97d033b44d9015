"""Gradients of some rows of a variable."""

from __future__ import annotations

import tensorflow as tf


def are_different(indices: tf.Tensor) -> bool:
    """Returns whether it is known that none of the indices of a gradient's rows occurs twice."""
    while indices.op.type in ("Identity", "Reshape"):
        indices = indices.op.inputs[0]
    return indices.op.type == "Unique" and indices.value_index == 0
