"""Keras objects inside a model_fn: what they do by calling must become part of the graph's ops.

Keras 3 updates variables as a side effect: of `apply_gradients`, of a batch normalisation in
training, of a dropout's random state, of a metric's `update_state`. Called in a `tf.Graph`, such an
update is an operation that nobody runs. Here they are collected while model_fn runs, and
`apply_gradients` is made to return the operation that model_fns written for tf.estimator expect.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common import global_state  # no public name gives these counts
from keras.src.backend.common import name_scope as keras_name_scope  # nor the current path
from keras.src.backend.common.stateless_scope import in_stateless_scope

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import keras_optimizers

_RANDOM_STATE = "seed_generator_state"
_NAME_COUNTS = "object_name_uids"
_UPDATE_PREFIXES = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply")


class SideEffects:
    """What Keras objects did in a context.

    Attributes:
        inputs: Tensors that have to be there before anything is updated.
        variables: The Keras variables that were made.
        applied_gradients: The operation of each `apply_gradients`.
    """

    def __init__(self, inputs: Sequence[Any] = ()) -> None:
        self.inputs = [tensor for tensor in inputs if tf.is_tensor(tensor)]
        self.variables: list[Any] = []
        self.applied_gradients: list[tf.Operation] = []

    def updates(self, variables: Iterable[Any] | None = None) -> list[tf.Operation]:
        """Returns the operations of the default graph that update `variables`.

        Initializers do not count, nor does what a saver restores or a function does when called.

        Args:
            variables: Keras or TensorFlow variables; None takes all that were made.
        """
        handles = {}
        for variable in self.variables if variables is None else variables:
            for part in _parts(keras_optimizers.tf_variable(variable)):
                if tf.is_symbolic_tensor(part.handle):
                    handles[part.handle.name] = part.initializer
        return [
            operation
            for operation in tf1.get_default_graph().get_operations()
            if operation.type.startswith(_UPDATE_PREFIXES)
            and operation.inputs
            and operation.inputs[0].name in handles
            and operation is not handles[operation.inputs[0].name]
            and not _restores(operation)
        ]


def _restores(update: tf.Operation) -> bool:
    """Returns whether an update is that of a saver, which model_fn may have made."""
    source = update.inputs[-1].op
    while source.type in ("Identity", "Reshape"):
        source = source.inputs[0].op
    return source.type == "RestoreV2"


class _Active(threading.local):
    """The collections that are going on in this thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[SideEffects] = []


_active = _Active()


@contextlib.contextmanager
def collected_side_effects(inputs: Any = ()) -> Iterator[SideEffects]:
    """Collects what Keras objects do within the context, in graph mode and in this thread.

    Args:
        inputs: Nested structure of the tensors that model_fn is called with. No variable is updated
            before they are there: else a counter would count the attempt to read past the end.
    """
    _watch_keras()
    if "tf_keras" in sys.modules or os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "true", "True"):
        _watch_tf_keras()
    effects = SideEffects(tf.nest.flatten(inputs, expand_composites=True))
    _active.stack.append(effects)
    try:
        with _names_from_the_start():
            yield effects
    finally:
        _active.stack.remove(effects)


@contextlib.contextmanager
def _names_from_the_start() -> Iterator[None]:
    """Numbers automatic names as if nothing had been named before.

    Keras 3 counts names over the whole process ("dense", "dense_1"), the Keras of tf.estimator's
    time did so in each graph. A second graph of the same model must use the names of the first, for
    checkpoints go by them.
    """
    before = global_state.get_global_attribute(_NAME_COUNTS)
    global_state.set_global_attribute(_NAME_COUNTS, collections.defaultdict(int))
    try:
        yield
    finally:
        global_state.set_global_attribute(_NAME_COUNTS, before)


@functools.cache
def _watch_keras() -> None:
    """Makes Keras 3 report to the collections going on; without any, it behaves as ever."""
    make_variable = keras.Variable.__init__
    assign_value = keras.Variable.assign
    make_optimizer = keras.optimizers.Optimizer.__init__

    @functools.wraps(make_variable)
    def variable_init(self: Any, *args: Any, **kwargs: Any) -> None:
        with _scope_of_the_path():
            make_variable(self, *args, **kwargs)
        if _in_plain_graph() and not in_stateless_scope():
            _keep_replicas_together(self.value)
            if is_random_state(self):  # no part of the model: tf.estimator's checkpoints have none
                make_local([self])
        for effects in _active.stack:
            effects.variables.append(self)

    @functools.wraps(assign_value)
    def assign(self: Any, value: Any) -> Any:
        if not _in_plain_graph() or in_stateless_scope():
            return assign_value(self, value)
        with tf.control_dependencies([*_active.stack[-1].inputs, *_uses_so_far(self)]):
            return assign_value(self, value)

    @functools.wraps(make_optimizer)
    def optimizer_init(self: Any, learning_rate: Any, *args: Any, **kwargs: Any) -> None:
        # One that is calculated in a graph, as the decays of tf.compat.v1 are, comes as a function.
        rate = (lambda: learning_rate) if tf.is_symbolic_tensor(learning_rate) else learning_rate
        make_optimizer(self, rate, *args, **kwargs)

    keras.Variable.__init__ = variable_init
    keras.Variable.assign = assign
    keras.optimizers.Optimizer.__init__ = optimizer_init
    keras.optimizers.Optimizer.apply_gradients = _as_operation(
        keras.optimizers.Optimizer.apply_gradients
    )


@functools.cache
def _watch_tf_keras() -> None:
    """Makes the newer optimizers of tf_keras, which update as a side effect too, return an operation."""
    optimizer_class = importlib.import_module("tf_keras").optimizers.Optimizer
    optimizer_class.apply_gradients = _as_operation(optimizer_class.apply_gradients)


def _as_operation(update_variables: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an optimizer's `apply_gradients` that returns an operation in a model_fn."""

    @functools.wraps(update_variables)
    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        if not _in_plain_graph():
            return update_variables(self, grads_and_vars, *args, **kwargs)
        update = keras_optimizers.apply_gradients(self, list(grads_and_vars))
        for effects in _active.stack:
            effects.applied_gradients.append(update)
        return update

    return apply_gradients


def is_random_state(variable: Any) -> bool:
    """Returns whether a Keras variable is the state of a `keras.random.SeedGenerator`."""
    return variable.name == _RANDOM_STATE


def _in_plain_graph() -> bool:
    """Returns whether a collection is going on, in a graph whose operations nobody runs by themselves."""
    return bool(_active.stack) and not tf.executing_eagerly() and not tf.inside_function()


def _keep_replicas_together(variable: Any) -> None:
    """Leaves a variable of several replicas in the graph's collections, and takes its parts out.

    A checkpoint holds it once. Those that TensorFlow makes for `tf.compat.v1` are collected in this way.
    """
    parts = _parts(variable)
    if parts[0] is not variable:
        for name in (tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.TRAINABLE_VARIABLES):
            collected = tf1.get_collection_ref(name)
            collected[:] = [v for v in collected if not any(v is part for part in parts)]


def _scope_of_the_path() -> contextlib.AbstractContextManager[Any]:
    """Returns the name scope that a variable of the current Keras path belongs in.

    Keras opens a layer's or an optimizer's scope again and again, and a graph numbers each time:
    "adam", "adam_1", "adam_2". A variable's name should be its path: "adam/learning_rate".
    """
    if not _in_plain_graph():
        return contextlib.nullcontext()
    path = [part for part in keras_name_scope.current_path().split("/") if part]
    scopes = [part for part in tf1.get_default_graph().get_name_scope().split("/") if part]
    outside, numbered = scopes[: len(scopes) - len(path)], scopes[len(scopes) - len(path) :]
    if len(scopes) < len(path) or not all(map(str.startswith, numbered, path)):
        return contextlib.nullcontext()  # somebody's own scopes
    scope = "/".join([*outside, *path])
    return tf.name_scope(f"{scope}/") if scope else contextlib.nullcontext()


def _uses_so_far(variable: Any) -> list[tf.Operation]:
    """Returns the reads and updates of a Keras variable that a further update has to wait for.

    A graph keeps no order between a read and an update that follows it in the program; a dropout
    could draw with the random state of the step to come, and with the same one again in that step.
    """
    variable = keras_optimizers.tf_variable(variable)
    initializers = [part.initializer for part in _parts(variable)]
    return [
        operation
        for operation in variable.handle.consumers()
        if operation.type.startswith(("Read", *_UPDATE_PREFIXES))
        and not any(operation is initializer for initializer in initializers)
    ]


def metric_ops(metric: Any, effects: SideEffects) -> tuple[Any, Any]:
    """Returns the (value, update_op) pair of a Keras metric whose `update_state` was called.

    Its variables become local ones: checkpoints do not hold them, and each evaluation starts anew.

    Args:
        metric: A metric of Keras 3 or tf_keras.
        effects: What model_fn's Keras objects did.

    Raises:
        ValueError: `update_state` was not called in model_fn.
    """
    variables = [keras_optimizers.tf_variable(variable) for variable in metric.variables]
    updates = list(getattr(metric, "updates", None) or effects.updates(variables))
    if not updates:
        raise ValueError(
            "A Keras metric in eval_metric_ops must be updated in model_fn: call its update_state(). "
            f"Received: {metric!r}"
        )
    make_local(variables)
    return tf.convert_to_tensor(metric.result()), tf.group(*updates)


def make_local(variables: Iterable[Any]) -> None:
    """Makes variables local ones: checkpoints do not hold them, and each session starts them anew.

    Args:
        variables: Keras or TensorFlow variables of the default graph.
    """
    _move(variables, tf1.GraphKeys.GLOBAL_VARIABLES, tf1.GraphKeys.LOCAL_VARIABLES)


def make_random_state_global(variables: Iterable[Any]) -> None:
    """Makes states of random numbers among the variables global ones, to be loaded and saved."""
    states = filter(is_random_state, variables)
    _move(states, tf1.GraphKeys.LOCAL_VARIABLES, tf1.GraphKeys.GLOBAL_VARIABLES)


def _move(variables: Iterable[Any], source: str, target: str) -> None:
    before, after = tf1.get_collection_ref(source), tf1.get_collection_ref(target)
    for variable in map(keras_optimizers.tf_variable, variables):
        before[:] = [other for other in before if other is not variable]
        if not any(other is variable for other in after):
            after.append(variable)


def load_value(variable: Any, value: Any, session: Any) -> None:
    """Sets a variable in a session; the graph may be finalized.

    Args:
        variable: `tf.Variable`, or one with a component for each replica.
        value: NumPy array.
        session: `tf.compat.v1.Session` of its graph.
    """
    for part in _parts(variable):
        initializer = part.initializer
        session.run(initializer, {initializer.inputs[1]: value})


def _parts(variable: Any) -> tuple[Any, ...]:
    """Returns the variable of each replica, or the one variable that there is."""
    return current_execution().components(variable)
