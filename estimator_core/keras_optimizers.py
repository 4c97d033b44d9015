"""Keras optimizers, of Keras 3 and of tf_keras, inside a `tf.Graph`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def is_keras_optimizer(optimizer: Any) -> bool:
    """Returns whether the object has the interface of a Keras optimizer, of whichever Keras."""
    return hasattr(optimizer, "apply_gradients") and hasattr(optimizer, "get_config")


def in_this_graph(optimizer: Any, iterations: Any = None) -> Any:
    """Returns the optimizer, or when it was made outside of the current graph a copy made in it.

    Keras optimizers own variables (the learning rate, the step count), which belong to one graph.

    Args:
        optimizer: A Keras optimizer.
        iterations: The variable that a `tf_keras.optimizers.legacy` optimizer counts its steps by,
            and increments, as tf.estimator 2.15 has it; None means one of its own. Other Keras
            optimizers always have their own.
    """
    if _is_legacy(optimizer):
        # These create their variables at first use, so the copy does so in the current graph.
        copy = type(optimizer).from_config(_config(optimizer))
        if iterations is not None:
            copy.iterations = iterations
        return copy
    variable = optimizer.iterations
    if not isinstance(variable, tf.Variable):
        variable = variable.value  # Keras 3 wraps the tf.Variable
    if tf.is_symbolic_tensor(variable.handle):
        return optimizer
    return type(optimizer).from_config(_config(optimizer))


def counts_by(optimizer: Any, step: Any) -> bool:
    """Returns whether an update by the optimizer increments `step`."""
    return _is_legacy(optimizer) and optimizer.iterations is step


def apply_gradients(optimizer: Any, grads_and_vars: Sequence[tuple[Any, Any]]) -> tf.Operation:
    """Returns the op of one update.

    Args:
        optimizer: A Keras optimizer that belongs to the current graph.
        grads_and_vars: Gradients, `Tensor` or `IndexedSlices`, with their variables.
    """
    if _is_legacy(optimizer):
        return tf.group(optimizer.apply_gradients(grads_and_vars))
    optimizer.build([variable for _, variable in grads_and_vars])

    # Keras returns no op to run. A function does: its call runs all side effects within, in order.
    @tf.function(autograph=False)
    def update() -> tf.Tensor:
        optimizer.apply_gradients(grads_and_vars)
        return tf.constant(0)

    return update().op


def _is_legacy(optimizer: Any) -> bool:
    return hasattr(optimizer, "get_updates")


def _config(optimizer: Any) -> dict[str, Any]:
    """Returns the optimizer's configuration, read outside of the current graph.

    Keras reads a learning rate by `.numpy()`, which only works eagerly; a graph is current in its
    own thread alone, so a new thread is an eager one.
    """
    found: list[dict[str, Any]] = []
    errors: list[Exception] = []

    def read() -> None:
        try:
            found.append(optimizer.get_config())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=read, name="keras_optimizer_config")
    thread.start()
    thread.join()
    if errors:
        raise ValueError(
            "Can't copy a Keras optimizer into the Estimator's graph; pass a function that makes it. "
            f"Received: optimizer={optimizer!r}"
        ) from errors[0]
    return found[0]
