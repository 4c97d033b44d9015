"""Batches without rows: what is computed of one is not a number, or says nothing of the model."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def batch_weight(batch: Any) -> tf.Tensor | None:
    """Returns the weight of a batch in a mean over batches: 1, or 0 if it has no rows; a float32 scalar.

    A batch has no rows when none of its tensors has; scalars say nothing. None stands for 1, when that is
    known before.

    `batch`: tensors, dense, sparse or ragged, in dicts, tuples and lists; None may be among them.
    """
    counts = []
    for tensor in tf.nest.flatten(batch):
        if not tf.is_tensor(tensor) or tensor.shape.rank == 0:
            continue
        if tensor.shape.rank and tensor.shape[0]:
            return None
        if isinstance(tensor, tf.SparseTensor):
            counts.append(tensor.dense_shape[0])
        elif isinstance(tensor, tf.RaggedTensor):
            counts.append(tf.cast(tensor.nrows(), tf.int64))
        elif isinstance(tensor, tf.Tensor) and tensor.dtype not in (tf.variant, tf.resource):
            counts.append(tf.size(tensor, tf.int64))
    return tf.cast(tf.add_n(counts) > 0, tf.float32) if counts else None
