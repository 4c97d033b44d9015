"""The order in which the variables of a graph get their initial values."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution


def in_order(scaffold: Any) -> Any:
    """Returns a Scaffold that initializes each variable after those that its initial value reads.

    TensorFlow initializes all variables at once, and so may read a value before it is set. For example, the
    learning rate of a tf_keras optimizer with a schedule is initialized from the optimizer's step count.

    `scaffold`: scaffold of the current graph. It is returned unchanged if it has its own `init_op`, or if
    no variable is initialized from another.
    """
    if scaffold.init_op is not None or tf1.get_collection(tf1.GraphKeys.INIT_OP):
        return scaffold
    first, *later = _levels(tf1.global_variables()) or [[]]
    if not later:
        return scaffold
    resources = [resource.create for resource in tf1.get_collection(tf1.GraphKeys.RESOURCES)]
    others = tf1.get_collection("saved_model_initializers")
    init_op = tf.group(*(variable.initializer for variable in first), *resources, *others)
    then = [[variable.initializer for variable in level] for level in later]

    def init_fn(_: Any, session: Any) -> None:
        for initializers in then:
            session.run(initializers)
        if scaffold.init_fn is not None:
            scaffold.init_fn(session)

    return tf1.train.Scaffold(init_op=init_op, init_fn=init_fn, copy_from_scaffold=scaffold)


def _levels(variables: list[Any]) -> list[list[Any]]:
    """Returns lists of variables such that each variable only reads those of earlier lists."""
    components = current_execution().components
    owners = {part.op: variable for variable in variables for part in components(variable)}
    remaining = {id(variable): _sources(variable, owners) for variable in variables}
    levels = []
    while remaining:
        ready = {key for key, sources in remaining.items() if not sources & remaining.keys()}
        ready = ready or set(remaining)  # a cycle, which TensorFlow refuses
        levels.append([variable for variable in variables if id(variable) in ready])
        remaining = {key: sources for key, sources in remaining.items() if key not in ready}
    return levels


def _sources(variable: Any, owners: dict[tf.Operation, Any]) -> set[int]:
    """Returns the ids of other variables that the initializer of `variable` reads."""
    found = set()
    pending = [
        getattr(variable.initializer, "op", variable.initializer)
    ]  # a warm start's initializer is a tensor
    reached = set(pending)
    while pending:
        operation = pending.pop()
        if operation.type == "ReadVariableOp":
            source = owners.get(operation.inputs[0].op)
            if source is not None and source is not variable:
                found.add(id(source))
        for before in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if before not in reached:
                reached.add(before)
                pending.append(before)
    return found
