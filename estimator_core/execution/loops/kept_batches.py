"""Tensors computed from batches, kept in the session until steps are made with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1


class KeptBatches:
    """Keeps the tensors of several batches of one shape, and of one batch of another shape.

    They are kept in variables of the session, so that no batch is lost by an error or the end of the input.
    """

    def __init__(self, inputs: Sequence[tf.Tensor]):
        graph = tf1.get_default_graph()
        self._inputs = inputs
        self.wanted = tf1.placeholder(tf.int32, [], "batches")
        self._sizes = tf1.placeholder(tf.int32, [None], "sizes_of_batch")
        name = graph.unique_name("kept_batches")

        def variable(suffix: str, dtype: tf.DType, shape: Any = None) -> tf.Tensor:
            return tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=f"{name}/{suffix}")

        numbered = list(enumerate(inputs))
        self._stacks = [variable(f"all_{index}", tensor.dtype) for index, tensor in numbered]
        self._other = [variable(f"other_{index}", tensor.dtype) for index, tensor in numbered]
        self._count = variable("count", tf.int32, [])
        # Inputs of the same dtype are adjacent.
        self._in_order = sorted(range(len(inputs)), key=lambda index: inputs[index].dtype.name)
        self._zeros = [tf1.placeholder(tf.int32, [None], "shape_of_all") for _ in inputs]
        self._start = [
            tf.raw_ops.AssignVariableOp(resource=stack, value=tf.zeros(shape, tensor.dtype))
            for stack, shape, tensor in zip(self._stacks, self._zeros, inputs, strict=True)
        ]
        self._start.append(tf.raw_ops.AssignVariableOp(resource=self._count, value=0))

    def start(self, session: Any, shapes: Sequence[Sequence[int]]) -> dict[Any, Any]:
        """Allocates the variables in a session, with no batches kept.

        `shapes`: shape of all batches together, `[most batches, ...]`, for each of the inputs.
        """
        session.run(self._start, dict(zip(self._zeros, shapes, strict=True)))
        sizes = [size for index in self._in_order for size in shapes[index][1:]]
        return {self._sizes: [*sizes, 0]}

    def count(self) -> tf.Tensor:
        """Returns the number of kept batches, and resets it to 0."""
        count = tf.raw_ops.ReadVariableOp(resource=self._count, dtype=tf.int32)
        with tf.control_dependencies([count]):
            empty = tf.raw_ops.AssignVariableOp(resource=self._count, value=0)
        with tf.control_dependencies([empty]):
            return tf.reshape(tf.identity(count), [])

    def stacks(self) -> list[tf.Tensor]:
        """Returns the values of each input in all batches, `[most batches, ...]`."""
        return self._read(self._stacks, several=True)

    def other(self) -> list[tf.Tensor]:
        """Returns the inputs of the batch of another shape."""
        return self._read(self._other, several=False)

    def _read(self, handles: Sequence[tf.Tensor], *, several: bool) -> list[tf.Tensor]:
        values = []
        for handle, tensor in zip(handles, self._inputs, strict=True):
            value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tensor.dtype)
            value.set_shape(tf.TensorShape([None]).concatenate(tensor.shape) if several else tensor.shape)
            values.append(value)
        return values

    def read_loop(self, next_batch: Callable[[], Sequence[tf.Tensor]]) -> tf.Tensor:
        """Returns a loop that reads the wanted number of batches, stopping after one of another shape.

        Returns a bool scalar: True if the last batch has another shape.
        """

        def continues(done: Any, is_other: Any) -> Any:
            return (done < self.wanted) & ~is_other

        def read(done: Any, is_other: Any) -> Any:
            del is_other
            values = next_batch()
            is_same = self._has_sizes(values)

            def keep() -> tf.Tensor:
                updates = [
                    tf.raw_ops.ResourceScatterUpdate(resource=stack, indices=done, updates=value)
                    for stack, value in zip(self._stacks, values, strict=True)
                ]
                with tf.control_dependencies(updates):
                    counted = tf.raw_ops.AssignVariableOp(resource=self._count, value=done + 1)
                with tf.control_dependencies([counted]):
                    return tf.constant(False)

            def keep_other() -> tf.Tensor:
                updates = [
                    tf.raw_ops.AssignVariableOp(resource=other, value=value)
                    for other, value in zip(self._other, values, strict=True)
                ]
                with tf.control_dependencies(updates):
                    return tf.constant(True)

            kept_or_other = tf.cond(is_same, keep, keep_other)
            with tf.control_dependencies([kept_or_other]):
                return done + 1, tf.identity(kept_or_other)

        start = [tf.constant(0), tf.constant(False)]
        return tf.while_loop(continues, read, start, parallel_iterations=1)[1]

    def _has_sizes(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        by_type: dict[Any, list[tf.Tensor]] = {}
        for index in self._in_order:
            by_type.setdefault(values[index].dtype, []).append(values[index])
        sizes = [size for group in by_type.values() for size in tf.shape_n(group)]
        return tf.reduce_all(
            tf.raw_ops.Equal(x=tf.concat([*sizes, [0]], 0), y=self._sizes, incompatible_shape_error=False)
        )
