"""Sums across the cores of a TPU, in a graph that has one core: this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

_CROSS_REPLICA_SUM = "CrossReplicaSum"


@contextlib.contextmanager
def without_cross_replica_sums(graph: tf.Graph) -> Iterator[None]:
    """Within this context, a sum over replicas that is added to `graph` is the replica's own value.

    `tf.compat.v1.tpu.CrossShardOptimizer` sums gradients by an operation that only a TPU has. A graph
    that holds it runs nowhere else, even if nothing uses its result. With one replica the sum is the
    value itself, so an identity is made in its place. Other graphs are not touched.

    Args:
        graph: The default graph.

    Raises:
        ValueError: A sum over replicas was made in a function (`tf.cond`, `tf.while_loop`,
            `tf.function`), which has a graph of its own.
    """
    # TensorFlow has no public way to say what a type of operation becomes. All wrappers of
    # operations come through here, in TensorFlow 2.16 to 2.21.
    create = graph._create_op_internal  # noqa: SLF001

    def create_on_host(op_type: str, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if op_type == _CROSS_REPLICA_SUM:
            return tf.identity(inputs[0], name=kwargs["name"]).op
        return create(op_type, inputs, *args, **kwargs)

    graph._create_op_internal = create_on_host  # noqa: SLF001
    try:
        yield
    finally:
        del graph._create_op_internal  # noqa: SLF001
    for function in graph.as_graph_def().library.function:
        if any(node.op == _CROSS_REPLICA_SUM for node in function.node_def):
            raise ValueError(
                "Sums over replicas, such as those of a CrossShardOptimizer, can't be made within "
                "tf.cond, tf.while_loop or tf.function where there is no TPU: leave them out when "
                f"params['use_tpu'] is False. Received: {_CROSS_REPLICA_SUM} in the function "
                f"{function.signature.name!r}"
            )
