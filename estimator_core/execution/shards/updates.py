"""Finding the operations that update variables, directly or in the functions that they call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

_WRITES = (
    "Apply",
    "Assign",
    "ResourceApply",
    "ResourceScatter",
    "ResourceSparseApply",
    "ResourceStridedSliceAssign",
    "Scatter",
    "SparseApply",
    "StridedSliceAssign",
)
# Operations that call functions, and the number of their inputs that the functions do not get.
_CALLS = {"Case": 1, "If": 1, "PartitionedCall": 0, "StatefulPartitionedCall": 0, "While": 0}
_FIRST_REF = 100


def is_handle(tensor: tf.Tensor) -> bool:
    """Returns whether a tensor is a handle of a state that is updated in place."""
    return tensor.dtype == tf.resource or tensor.dtype.as_datatype_enum > _FIRST_REF


def is_update(operation: tf.Operation) -> bool:
    """Returns whether the operation itself updates a variable."""
    return operation.type.startswith(_WRITES) and any(map(is_handle, operation.inputs))


def is_call(operation: tf.Operation) -> bool:
    """Returns whether the operation calls functions, which may update the variables that they get."""
    return operation.type in _CALLS


def called_functions(operations: Collection[tf.Operation]) -> dict[str, Any]:
    """Returns the functions of the graph by name; {} if none of the operations calls one."""
    graphs = {operation.graph for operation in operations if is_call(operation)}
    functions = [function for graph in graphs for function in graph.as_graph_def().library.function]
    return {function.signature.name: function for function in functions}


def find_updated_handles(operation: tf.Operation, functions: Mapping[str, Any]) -> list[tf.Tensor]:
    """Returns the handles of the variables that an operation updates, also in functions that it calls."""
    handles = [(index, position) for index, position in enumerate(operation.inputs) if is_handle(position)]
    if is_update(operation):
        return [handle for _, handle in handles]
    if not handles or not is_call(operation):
        return []
    node = operation.node_def
    return [handle for index, handle in handles if _is_updated(node, index, functions)]


def _is_updated(node: Any, index: int, functions: Mapping[str, Any]) -> bool:
    """Returns whether a node updates the variable that is its input of this index."""
    if node.op.startswith(_WRITES):
        return True
    if node.op not in _CALLS or index < _CALLS[node.op]:
        return False
    return any(
        _is_updated(inner, position, functions)
        for name in _called(node)
        for inner in functions[name].node_def
        for position in _uses(inner, functions[name], index - _CALLS[node.op])
    )


def _uses(inner: Any, function: Any, index: int) -> list[int]:
    """Returns the positions at which a node of a function takes the function's argument of this index."""
    name = function.signature.input_arg[index].name
    return [position for position, value in enumerate(inner.input) if value == name]


def _called(node: Any) -> list[str]:
    """Returns the names of the functions that a node calls."""
    functions = []
    for value in node.attr.values():
        functions += [value.func, *value.list.func]
    return [function.name for function in functions if function.name]
