"""Finding the variables that a step updates from one task's batch alone, as batch normalization does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

_UPDATE_PREFIXES = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply")
_COLLECTIVE_PREFIX = "CollectiveReduce"


def changed_by_batches(
    variables: Iterable[Any],
    components: Callable[[Any], Sequence[Any]],
    batches: Iterable[tf.Operation],
) -> list[Any]:
    """Returns the floating-point variables that are updated from a batch without a sum over the tasks.

    An optimizer's updates do not count, as they use gradients summed over the tasks. Updates within
    `tf.cond` and loops are not found.
    """
    graph_operations = list(batches)
    if not graph_operations:
        return []
    graph = graph_operations[0].graph
    sums = [
        operation
        for operation in graph.get_operations()
        if operation.type.startswith(_COLLECTIVE_PREFIX)
    ]
    from_batches, from_sums = _descendants(graph_operations), _descendants(sums)
    updated = {
        operation.inputs[0].name
        for operation in from_batches - from_sums
        if operation.type.startswith(_UPDATE_PREFIXES)
    }
    return [
        variable
        for variable in variables
        if variable.dtype.is_floating
        and any(part.op.outputs[0].name in updated for part in components(variable))
    ]


def _descendants(operations: Iterable[tf.Operation]) -> set[tf.Operation]:
    """Returns the operations and all operations that use their values, directly or indirectly."""
    found = set(operations)
    pending = list(found)
    while pending:
        for tensor in pending.pop().outputs:
            for operation in tensor.consumers():
                if operation not in found:
                    found.add(operation)
                    pending.append(operation)
    return found
