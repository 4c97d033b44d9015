"""Finding the operations with side effects that some outputs depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core.execution.loops.step_graph import is_of_tensorflow_1

# Operations that hold or reference a state, and only read it.
_READS = (
    "HashTableV2",
    "IteratorV2",
    "LookupTableFindV2",
    "LookupTableSizeV2",
    "MutableHashTableV2",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarHandleOp",
    "VarIsInitializedOp",
    "VariableShape",
)


def stateful_operations(outputs: Sequence[Any]) -> list[Any]:
    """Returns the operations with side effects, such as variable updates, that the outputs depend on.

    Running these has the same effects as computing the outputs, without the values computed afterwards, such
    as a metric's value after each batch.

    Returns the operations; the outputs themselves if they depend on a variable or a loop of TensorFlow 1.
    """
    visited: set[tf.Operation] = set()
    effects = []
    pending = [getattr(output, "op", output) for output in outputs]
    while pending:
        operation = pending.pop()
        if operation in visited:
            continue
        visited.add(operation)
        if is_of_tensorflow_1(operation):
            return list(outputs)
        is_plain = operation.op_def is not None and not operation.op_def.is_stateful
        if not is_plain and operation.type not in _READS:
            effects.append(operation)
        pending += [tensor.op for tensor in operation.inputs]
        pending += operation.control_inputs
    return effects
