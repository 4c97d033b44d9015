"""Sums across the replicas of a TPU, an operation that only a TPU has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

CROSS_REPLICA_SUM = "CrossReplicaSum"

Replace = Callable[[tf.Tensor, tf.Tensor, str], tf.Operation]
"""Function of (value of the replica, group assignment, name) that returns the op of the sum."""


@contextlib.contextmanager
def replaced_sums(graph: tf.Graph, replace: Replace, advice: str) -> Iterator[None]:
    """Opens a context in which `replace` creates each sum over replicas that is added to `graph`.

    `tf.compat.v1.tpu.CrossShardOptimizer` sums gradients by an operation that only a TPU has. A graph
    that contains it runs nowhere else, even if nothing uses its result. Other graphs are not touched.
    """
    # TensorFlow has no public way to replace a type of operation. All wrappers of operations call
    # `_create_op_internal`, in TensorFlow 2.16 to 2.21.
    create = graph._create_op_internal  # noqa: SLF001

    def create_elsewhere(op_type: str, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if op_type == CROSS_REPLICA_SUM:
            return replace(inputs[0], inputs[1], kwargs["name"])
        return create(op_type, inputs, *args, **kwargs)

    graph._create_op_internal = create_elsewhere  # noqa: SLF001
    try:
        yield
    finally:
        del graph._create_op_internal  # noqa: SLF001
    for function in graph.as_graph_def().library.function:
        if any(node.op == CROSS_REPLICA_SUM for node in function.node_def):
            raise ValueError(
                "Sums over replicas, such as those of a CrossShardOptimizer, can't be made within "
                f"tf.cond, tf.while_loop or tf.function where there is no TPU: {advice}. Received: "
                f"{CROSS_REPLICA_SUM} in the function {function.signature.name!r}"
            )
