"""Keras variables in the collections of a `tf.Graph`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import keras_internals


def tf_variable(variable: Any) -> Any:
    """Returns the `tf.Variable` of a Keras 3 variable; a `tf.Variable` as it is."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def graph_of(variable: Any) -> tf.Graph | None:
    """Returns the graph of a `tf.Variable`; None for an eager one."""
    if not hasattr(variable, "handle"):  # a ref variable, which only graphs have
        return variable.graph
    return variable.handle.graph if tf.is_symbolic_tensor(variable.handle) else None


def components(variable: Any) -> tuple[Any, ...]:
    """Returns a variable's component on each replica, or the only variable."""
    return current_execution().components(tf_variable(variable))


def keep_replicas_together(variable: Any) -> None:
    """Removes the components of a replicated variable from the graph's collections, and keeps the whole.

    A checkpoint then holds it once. TensorFlow does so for `tf.compat.v1` variables.
    """
    variable = tf_variable(variable)
    parts = components(variable)
    if parts[0] is not variable:
        for name in (tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.TRAINABLE_VARIABLES):
            collected = tf1.get_collection_ref(name)
            collected[:] = [v for v in collected if not any(v is part for part in parts)]


def make_local(variables: Iterable[Any]) -> None:
    """Makes variables local: checkpoints leave them out, and each session initializes them.

    Args:
        variables: Keras or TensorFlow variables of the default graph.
    """
    _move(variables, tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.LOCAL_VARIABLES)


def make_random_state_global(variables: Iterable[Any]) -> None:
    """Makes the states of random numbers among the variables global, so that checkpoints hold them."""
    states = filter(keras_internals.is_random_state, variables)
    _move(states, tf1.GraphKeys.LOCAL_VARIABLES, tf1.GraphKeys.GLOBAL_VARIABLES)


def _move(variables: Iterable[Any], source: str, target: str) -> None:
    before, after = tf1.get_collection_ref(source), tf1.get_collection_ref(target)
    for variable in map(tf_variable, variables):
        whole_and_parts = (variable, *components(variable))
        before[:] = [v for v in before if not any(v is each for each in whole_and_parts)]
        if not any(other is variable for other in after):
            after.append(variable)


def load_value(variable: Any, value: Any, session: Any) -> None:
    """Sets a variable in a session; the graph may be finalized.

    Args:
        variable: `tf.Variable`, or one with a component for each replica.
        value: NumPy array.
        session: `tf.compat.v1.Session` of its graph.
    """
    for part in components(variable):
        initializer = part.initializer
        session.run(initializer, {initializer.inputs[1]: value})
