"""Construction of the op of one training step from a loss, for any kind of optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.execution.shards.updates import called_functions, find_updated_handles, is_handle
from estimator_core.keras_in_graph import keras_optimizers
from estimator_core.optimizers.named import NAMED_OPTIMIZERS, optimizer_named

_LIBRARIES = ("estimator_core.", "keras.", "tensorflow.", "tf_keras.")


class OptimizedPart(NamedTuple):
    """A part of a model with its own optimizer."""

    optimizer: Any  # Any optimizer that `get_optimizer` takes
    variables: Sequence[Any]  # Trainable variables of this part
    # Learning rate of an optimizer given by name; None means the optimizer's default.
    learning_rate: float | None = None


def get_optimizer(optimizer: Any, learning_rate: float | None = None, iterations: Any = None) -> Any:
    """Returns an optimizer that belongs to the current graph.

    `optimizer`: A name ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"), a Keras optimizer (Keras 3 or
    tf_keras), a `tf.compat.v1.train.Optimizer`, or a function without arguments, or a class, that returns
    one of these; it is called in the current graph, so it may use the global step.
    `learning_rate`: learning rate of an optimizer given by name: None means 0.001, and 0.01 for "SGD".
    `iterations`: variable that counts training steps, for optimizers that can use it; None lets the
    optimizer count.
    """
    if isinstance(optimizer, str):
        return optimizer_named(optimizer, NAMED_OPTIMIZERS)(learning_rate, iterations)
    if isinstance(optimizer, tf1.train.Optimizer):
        return optimizer
    if keras_optimizers.is_keras_optimizer(optimizer) and not isinstance(optimizer, type):
        return keras_optimizers.in_this_graph(optimizer, iterations, itself=True)
    if callable(optimizer):
        made = keras_optimizers.call_with_fresh_names(optimizer)
        return get_optimizer(made, learning_rate, iterations)
    raise ValueError(
        "The given object is not a tf.keras.optimizers.Optimizer instance, a tf.compat.v1.train.Optimizer, a "
        f"name, or a function that returns one of these. Received: optimizer={optimizer!r}"
    )


def minimize(
    optimizer: Any, loss: tf.Tensor, trainable_variables: Sequence[Any] | None = None
) -> tf.Operation:
    """Returns the op of one training step; it also increments the global step."""
    if trainable_variables is None:
        trainable_variables = tf1.trainable_variables()
    return minimize_parts(loss, [OptimizedPart(optimizer, trainable_variables)])


def minimize_parts(loss: tf.Tensor, parts: Sequence[OptimizedPart]) -> tf.Operation:
    """Returns the op of one training step in which each part has its own optimizer.

    All gradients are computed at the same point. The first part's optimizer counts its steps by the
    global step, the others by their own variables; the global step is incremented last. An optimizer
    that overrides its update method is called by that method; if it returns a tensor, so does this function.
    If one Keras 2 optimizer is given for several parts, the later ones have copies of it.

    Source: tf.estimator 2.15 trains its linear-and-DNN models in this way.
    """
    global_step = tf1.train.get_or_create_global_step()
    optimizers: list[Any] = []
    for part in parts:
        step = None if optimizers else global_step
        optimizer = get_optimizer(part.optimizer, part.learning_rate, step)
        if any(optimizer is candidate for candidate in optimizers):
            optimizer = keras_optimizers.another_in_this_graph(optimizer)
        optimizers.append(optimizer)
    gradients = [
        None if has_own_updates(optimizer) else _compute_gradients(optimizer, loss, part.variables)
        for optimizer, part in zip(optimizers, parts, strict=True)
    ]
    updates_before = find_updates(global_step) if _is_own(optimizers[0]) else set()
    to_increment = global_step if len(parts) == 1 else None
    updates = [
        own_updates(optimizer, loss, part.variables, to_increment)
        if grads_and_vars is None
        else _apply_gradients(optimizer, grads_and_vars, to_increment)
        for optimizer, part, grads_and_vars in zip(optimizers, parts, gradients, strict=True)
    ]
    counts = []
    if _is_own(optimizers[0]):
        is_counted = find_updates(global_step) != updates_before
    else:
        is_counted = keras_optimizers.increments(optimizers[0], global_step)
    if not is_counted:
        with tf.control_dependencies(updates):
            counts = [global_step.assign_add(1, read_value=False)]
    return first_after(updates, counts)


def _is_own(optimizer: Any) -> bool:
    """Returns whether methods of the user's make the update, and may increment the global step."""
    is_own = has_own_updates(optimizer) or has_own(optimizer, "apply_gradients")
    return is_own and current_execution().num_replicas == 1


def _compute_gradients(optimizer: Any, loss: tf.Tensor, variables: Sequence[Any]) -> list[tuple[Any, Any]]:
    if not variables:
        raise ValueError("The model has no trainable variables for its optimizer.")
    if isinstance(optimizer, tf1.train.Optimizer):
        # Wrappers, for clipping or loss scaling, have their own way to compute gradients.
        with current_execution().losses_as_they_are():  # heads have applied the share
            pairs = optimizer.compute_gradients(loss, var_list=list(variables))
    else:
        loss = keras_optimizers.scaled_loss(optimizer, loss, variables)
        compute = optimizer.get_gradients if has_own(optimizer, "get_gradients") else tf.gradients
        pairs = list(zip(compute(loss, list(variables)), variables, strict=True))
    pairs = [(grad, variable) for grad, variable in pairs if grad is not None]
    if not pairs:
        names = [variable.name for variable in variables]
        raise ValueError(f"The loss depends on none of the variables. Received: variables={names}")
    return current_execution().sum_gradients(pairs)


def _apply_gradients(
    optimizer: Any, grads_and_vars: Sequence[tuple[Any, Any]], global_step: Any
) -> tf.Operation:
    if isinstance(optimizer, tf1.train.Optimizer):
        if global_step is not None and has_own(optimizer, "apply_gradients"):
            return optimizer.apply_gradients(grads_and_vars, global_step=global_step)
        return optimizer.apply_gradients(grads_and_vars)
    return keras_optimizers.apply_gradients(optimizer, grads_and_vars)


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


def own_updates(optimizer: Any, loss: tf.Tensor, variables: Sequence[Any], global_step: Any = None) -> Any:
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


def find_updates(variable: Any) -> set[tf.Operation]:
    """Returns the operations so far that update a variable, directly or in functions that they call."""
    updates = set()
    handles = [variable.op.outputs[0]]
    names = {handles[0].name}
    for handle in handles:
        users = handle.consumers()
        functions = called_functions(users)
        for user in users:
            if handle.name in {updated.name for updated in find_updated_handles(user, functions)}:
                updates.add(user)
            passed_on = [tensor for tensor in user.outputs if is_handle(tensor) and tensor.name not in names]
            handles += passed_on  # as by the Switch of a condition
            names |= {operation.name for operation in passed_on}
    return updates
