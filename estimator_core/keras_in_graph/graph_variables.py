"""Keras variables in the collections of a `tf.Graph`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import keras_internals


def tf_variable(variable: Any) -> Any:
    """Returns the `tf.Variable` of a Keras 3 variable; a `tf.Variable` as it is."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def variable_graph(variable: Any) -> tf.Graph | None:
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
    """Makes variables local: checkpoints leave them out, and each session initializes them."""
    _move(variables, tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.LOCAL_VARIABLES)


def local_metrics() -> contextlib.AbstractContextManager[None]:
    """Returns a context in which variables that add up the replicas when read, as metrics do, are local."""

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        if kwargs.get("synchronization") == tf.VariableSynchronization.ON_READ:
            kwargs["collections"] = [tf1.GraphKeys.LOCAL_VARIABLES]
        return next_creator(**kwargs)

    return tf.variable_creator_scope(create)


def make_random_state_global(variables: Iterable[Any]) -> None:
    """Makes the states of random numbers among the variables global, so that checkpoints hold them."""
    states = filter(keras_internals.is_random_state, variables)
    _move(states, tf1.GraphKeys.LOCAL_VARIABLES, tf1.GraphKeys.GLOBAL_VARIABLES)


def _move(variables: Iterable[Any], source: str, target: str) -> None:
    original, after = tf1.get_collection_ref(source), tf1.get_collection_ref(target)
    for variable in map(tf_variable, variables):
        whole_and_parts = (variable, *components(variable))
        original[:] = [v for v in original if not any(v is part for part in whole_and_parts)]
        if not any(other is variable for other in after):
            after.append(variable)


def merged_value(variable: Any, value: Any) -> Any:
    """Returns the value to assign to a variable: the mean over the replicas if each has its own copy.

    Layers of Keras 3 leave open how replicas share a moving average; a checkpoint would hold the first
    replica's alone.

    Source: the Keras of tf.estimator 2.15, which averages them over the replicas.
    """
    variable = tf_variable(variable)
    is_separate = variable.aggregation == tf.VariableAggregation.NONE
    if not is_separate or not variable.dtype.is_floating or len(components(variable)) == 1:
        return value
    return current_execution().mean_over_replicas(tf.convert_to_tensor(value, variable.dtype))


def check_adds_up_replicas(
    variables: Iterable[Any], is_updated: Callable[[Any], Any] = lambda variable: True
) -> None:
    """Checks that the values of a metric's variables on several replicas can be combined."""
    for variable in map(tf_variable, variables):
        is_on_read = variable.synchronization == tf.VariableSynchronization.ON_READ
        is_wrong = variable.aggregation == tf.VariableAggregation.NONE or (
            variable.aggregation == tf.VariableAggregation.SUM and not is_on_read
        )
        if is_wrong and len(components(variable)) > 1 and is_updated(variable):
            raise ValueError(
                "The variables of a Keras metric must be combined over the replicas of a tf.distribute "
                "strategy: create them with the metric's add_weight() or add_variable(), which sum them, "
                "or pass synchronization='on_read' and aggregation='sum' or 'mean'. Received: "
                f"{variable.name!r} with {variable.synchronization}, {variable.aggregation}"
            )


def load_value(variable: Any, value: Any, session: Any) -> None:
    """Sets a variable in a session; the graph may be finalized."""
    for part in components(variable):
        initializer = part.initializer
        session.run(initializer, {initializer.inputs[1]: value})
