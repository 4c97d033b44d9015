"""Sparse gradients: gradients of some rows of a variable."""

from __future__ import annotations

import tensorflow as tf


def are_different(indices: tf.Tensor) -> bool:
    """Returns whether the row indices of a gradient are known to be unique."""
    while indices.op.type in ("Identity", "Reshape"):
        indices = indices.op.inputs[0]
    return indices.op.type == "Unique" and indices.value_index == 0
