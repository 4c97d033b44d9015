"""Updates by methods that the user overrides, in the optimizer's class or on the object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.execution.shards.updates import called_functions, is_handle, updated_by

_LIBRARIES = ("estimator_core.", "keras.", "tensorflow.", "tf_keras.")


def has_own(optimizer: Any, name: str) -> bool:
    """Returns whether a method of the optimizer exists and is the user's, not a library's."""
    method = getattr(optimizer, name, None)
    return method is not None and not str(getattr(method, "__module__", "")).startswith(_LIBRARIES)


def has_own_updates(optimizer: Any) -> bool:
    """Returns whether the optimizer has its own `get_updates` (Keras 2) or `minimize` (`tf.compat.v1`).

    In a replica, `compute_gradients` and `apply_gradients` are called in place of `minimize`: the
    gradients of all replicas are added up in between.
    """
    if isinstance(optimizer, tf1.train.Optimizer):
        return current_execution().num_replicas == 1 and has_own(optimizer, "minimize")
    return has_own(optimizer, "get_updates")


def own_updates(
    optimizer: Any, loss: tf.Tensor, variables: Sequence[Any], global_step: Any = None
) -> Any:
    """Returns the op of all updates by the optimizer's own method, or the value that it returns.

    `global_step`: variable that a `tf.compat.v1` optimizer should increment; None for none.

    Source: tf.estimator 2.15 calls `get_updates(loss, params)`, but runs only the first of several updates,
    and `minimize(loss, global_step=global_step)`, with a `var_list` only if there are other variables.
    """
    with tf.control_dependencies([loss]):  # nothing is counted at the end of the input
        if not isinstance(optimizer, tf1.train.Optimizer):
            return first_after(optimizer.get_updates(loss, list(variables)))
        arguments: dict[str, Any] = {}
        if global_step is not None:
            arguments["global_step"] = global_step
        if {id(variable) for variable in variables} != set(map(id, tf1.trainable_variables())):
            arguments["var_list"] = list(variables)
        return optimizer.minimize(loss, **arguments)


def first_after(updates: Sequence[Any], others: Sequence[Any] = ()) -> Any:
    """Returns the op of all updates; if the first one is a tensor, its value after all of them."""
    everything = [*updates, *others]
    if not tf.is_tensor(updates[0]):
        return tf.group(*everything)
    with tf.control_dependencies(everything):
        return tf.identity(updates[0])


def updates_of(variable: Any) -> set[tf.Operation]:
    """Returns the operations so far that update a variable, by themselves or in functions that they call."""
    updates = set()
    handles = [variable.op.outputs[0]]
    names = {handles[0].name}
    for handle in handles:
        users = handle.consumers()
        functions = called_functions(users)
        for user in users:
            if handle.name in {updated.name for updated in updated_by(user, functions)}:
                updates.add(user)
            passed_on = [
                each for each in user.outputs if is_handle(each) and each.name not in names
            ]
            handles += passed_on  # as by the Switch of a condition
            names |= {each.name for each in passed_on}
    return updates
