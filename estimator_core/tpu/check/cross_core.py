"""Sums across the cores of a TPU, in the graph of one core, as operations that its compiler understands."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

_CROSS_REPLICA_SUM = "CrossReplicaSum"
_keys = itertools.count(1)


def sum_over_cores(value: tf.Tensor, groups: Sequence[Sequence[int]], name: str | None = None) -> Any:
    """Returns the sum of a value over the cores of this core's group.

    Args:
        value: The value of this core.
        groups: Which cores are summed up together; each core is in one group.
        name: Name of the operation.
    """
    key = next(_keys)
    size, group = tf.unstack(
        tf.raw_ops.CollectiveAssignGroupV2(
            group_assignment=[list(group) for group in groups], device_index=0, base_key=key
        )
    )
    return tf.raw_ops.CollectiveReduceV2(
        input=value,
        group_size=size,
        group_key=group,
        instance_key=key,
        ordering_token=[],
        merge_op="Add",
        final_op="Id",
        name=name,
    )


@contextlib.contextmanager
def sums_as_collectives(graph: tf.Graph, num_cores: int) -> Iterator[None]:
    """Within this context, a sum over replicas that is added to `graph` is one that can be compiled.

    `tf.compat.v1.tpu.cross_replica_sum`, and so `CrossShardOptimizer`, makes an operation that only a
    TensorFlow with a TPU can compile.

    Args:
        graph: The default graph.
        num_cores: Number of cores.
    """
    create = graph._create_op_internal  # noqa: SLF001

    def create_collective(op_type: str, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if op_type != _CROSS_REPLICA_SUM:
            return create(op_type, inputs, *args, **kwargs)
        value, given = inputs
        groups = tf.get_static_value(given)
        if groups is None or not len(groups):
            groups = [range(num_cores)]
        return sum_over_cores(value, groups, kwargs["name"]).op

    graph._create_op_internal = create_collective  # noqa: SLF001
    try:
        yield
    finally:
        del graph._create_op_internal  # noqa: SLF001
