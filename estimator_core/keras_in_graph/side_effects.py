"""Side effects of Keras objects in a model_fn, which must become part of the graph's ops.

Keras 3 updates variables as a side effect: of `apply_gradients`, of a batch normalisation in
training, of a dropout's random state, of a metric's `update_state`. Called in a `tf.Graph`, such an
update is an operation that nothing runs. This module collects them while model_fn runs, and
`apply_gradients` returns the operation that model_fns written for tf.estimator expect.

Keras has no hook for this, so four methods of its base classes are replaced, only while a
model_fn is being called in some thread (`class_patches`). It can't be known before whether a model_fn
uses Keras: the constructor of its first optimizer must already accept a learning rate
that is a tensor of the graph, which Keras rejects. The replacements act only in a thread with an active
collection, in the graph that is being built: they pass on all calls from other threads, from eager code and
from within a `tf.function`. If a program has not imported Keras, nothing is replaced.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.execution.shards.class_patches import ClassPatches, Replacement
from estimator_core.keras_in_graph import graph_variables, keras_internals, keras_optimizers

_UPDATE_PREFIXES = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply")


class SideEffects:
    """The side effects of Keras objects in a context.

    `inputs`: Tensors that must be computed before any variable is updated.
    """

    def __init__(self, inputs: Sequence[Any] = ()) -> None:
        self.graph = tf1.get_default_graph()
        self.inputs = [tensor for tensor in inputs if tf.is_tensor(tensor)]
        self.variables: list[Any] = []
        self.applied_gradients: list[tf.Operation] = []
        self._optimizers: list[tuple[Any, Any]] = []

    def updates(self, variables: Iterable[Any] | None = None) -> list[tf.Operation]:
        """Returns the operations of the graph that update `variables`.

        Initializers don't count, nor do the restores of a saver or the updates within a function.

        `variables`: keras or TensorFlow variables; None takes all that were made in the context.
        """
        handles = {}
        for variable in self.variables if variables is None else variables:
            for part in graph_variables.components(variable):
                if graph_variables.variable_graph(part) is self.graph:
                    handles[part.op.outputs[0].name] = part.initializer
        return [
            operation
            for operation in self.graph.get_operations()
            if operation.type.startswith(_UPDATE_PREFIXES)
            and operation.inputs
            and operation.inputs[0].name in handles
            and operation is not handles[operation.inputs[0].name]
            and not _restores(operation)
        ]

    def in_this_graph(self, optimizer: Any) -> Any:
        """Returns an optimizer, or its only copy in the current graph if it was made outside of it."""
        for original, usable in self._optimizers:
            if original is optimizer:
                return usable
        usable = keras_optimizers.in_this_graph(optimizer)
        self._optimizers.append((optimizer, usable))
        return usable


def _restores(update: tf.Operation) -> bool:
    """Returns whether an update is a saver's restore: model_fn may have made a saver."""
    source = update.inputs[-1].op
    while source.type in ("Identity", "Reshape"):
        source = source.inputs[0].op
    return source.type == "RestoreV2"


class _Active(threading.local):
    """The active collections of this thread, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[SideEffects] = []


_active = _Active()
_patches = ClassPatches()
_graphs: list[tf.Graph] = []
"""Graphs with a collection in any thread: an optimizer may be made in another thread."""


@contextlib.contextmanager
def collected_side_effects(inputs: Any = ()) -> Iterator[SideEffects]:
    """Collects the side effects of Keras objects within the context, in graph mode and in this thread.

    `inputs`: nested structure of model_fn's tensors. Updates of variables wait for them: a counter would
    otherwise count the attempt to read past the end.
    """
    effects = SideEffects(tf.nest.flatten(inputs, expand_composites=True))
    with (
        _patches.needed(_replacements()),
        tf.variable_creator_scope(_watch_for_late_imports("keras" in sys.modules)),
        keras_internals.fresh_names(),
    ):
        _graphs.append(effects.graph)
        _active.stack.append(effects)
        try:
            yield effects
        finally:
            _active.stack.remove(effects)
            _graphs.remove(effects.graph)


def _replacements() -> list[Replacement]:
    """Returns the replacements for the Keras versions that the program has imported."""
    replacements = []
    if "keras" in sys.modules:
        keras = importlib.import_module("keras")
        replacements += [
            Replacement(keras.Variable, "__init__", _variable_init),
            Replacement(keras.Variable, "assign", _assign),
            Replacement(keras.optimizers.Optimizer, "__init__", _optimizer_init),
            Replacement(keras.optimizers.Optimizer, "apply_gradients", _apply_gradients),
        ]
    if "tf_keras" in sys.modules:  # its newer optimizers update as a side effect, too
        optimizer_class = importlib.import_module("tf_keras").optimizers.Optimizer
        replacements.append(Replacement(optimizer_class, "apply_gradients", _apply_gradients))
    return replacements


def _watch_for_late_imports(had_keras: bool) -> Callable[..., Any]:
    """Returns a variable creator that notices a Keras imported by model_fn itself.

    TensorFlow imports one Keras; this is for the other. tf_keras makes a variable before any
    replacement matters. With Keras 3 it is too late, since that variable may be a random state.
    """

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        if not had_keras and "keras" in sys.modules:
            raise RuntimeError(
                "Keras 3 was first imported within model_fn, too late to follow its side effects: import "
                "keras at the top of the module."
            )
        _patches.also(_replacements())
        return next_creator(**kwargs)

    return create


def _variable_init(make_variable: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(make_variable)
    def variable_init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not _active.stack:
            make_variable(self, *args, **kwargs)
            return
        with _scope_of_the_path():
            make_variable(self, *args, **kwargs)
        if _in_plain_graph() and not keras_internals.in_stateless_scope():
            graph_variables.keep_replicas_together(self)
            if keras_internals.is_random_state(self):  # tf.estimator's checkpoints have none
                graph_variables.make_local([self])
        for effects in _collections_of_this_graph():
            effects.variables.append(self)

    return variable_init


def _assign(assign_value: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(assign_value)
    def assign(self: Any, value: Any) -> Any:
        if not _in_plain_graph() or keras_internals.in_stateless_scope():
            return assign_value(self, value)
        value = graph_variables.merged_value(self, value)
        with tf.control_dependencies([*_active.stack[-1].inputs, *_uses_so_far(self)]):
            return assign_value(self, value)

    return assign


def _optimizer_init(make_optimizer: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(make_optimizer)
    def optimizer_init(self: Any, learning_rate: Any, *args: Any, **kwargs: Any) -> None:
        # Keras accepts a tensor of a graph, such as a decay of tf.compat.v1, only as a function.
        is_in_model = tf.is_symbolic_tensor(learning_rate) and any(
            learning_rate.graph is graph for graph in _graphs
        )
        rate = (lambda: learning_rate) if is_in_model else learning_rate
        make_optimizer(self, rate, *args, **kwargs)

    return optimizer_init


def _apply_gradients(update_variables: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a replacement of `apply_gradients` that returns an operation within a model_fn."""

    @functools.wraps(update_variables)
    def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        if not _in_plain_graph():
            return update_variables(self, grads_and_vars, *args, **kwargs)
        optimizer = _active.stack[-1].in_this_graph(self)
        # A subclass' own apply_gradients has already processed the gradients.
        update = keras_optimizers.apply_gradients(
            optimizer, list(grads_and_vars), lambda pairs: update_variables(optimizer, pairs, *args, **kwargs)
        )
        for effects in _collections_of_this_graph():
            effects.applied_gradients.append(update)
        return update

    return apply_gradients


def _collections_of_this_graph() -> list[SideEffects]:
    """Returns this thread's collections of the current graph: a model_fn may train another model.

    The innermost collection has the graph that is being built; the default graph may be Keras' own.
    """
    return [effects for effects in _active.stack if effects.graph is _active.stack[-1].graph]


def _in_plain_graph() -> bool:
    """Returns whether a collection is active, in a graph where nothing runs operations automatically."""
    return bool(_active.stack) and not tf.executing_eagerly() and not tf.inside_function()


def _scope_of_the_path() -> contextlib.AbstractContextManager[Any]:
    """Returns the name scope for a variable of the current Keras path.

    Keras opens the scope of a layer or an optimizer repeatedly, and a graph numbers each:
    "adam", "adam_1", "adam_2". The name of a variable should be its path: "adam/learning_rate".
    """
    if not _in_plain_graph():
        return contextlib.nullcontext()
    path = [part for part in keras_internals.current_path().split("/") if part]
    scopes = [part for part in tf1.get_default_graph().get_name_scope().split("/") if part]
    outside, numbered = scopes[: len(scopes) - len(path)], scopes[len(scopes) - len(path) :]
    if len(scopes) < len(path) or not all(map(str.startswith, numbered, path)):
        return contextlib.nullcontext()  # the user's own scopes
    scope = "/".join([*outside, *path])
    return tf.name_scope(f"{scope}/") if scope else contextlib.nullcontext()


def _uses_so_far(variable: Any) -> list[tf.Operation]:
    """Returns the reads and updates of a Keras variable that a new update has to wait for.

    A graph has no order between a read and an update that follows it in the program: a dropout
    could draw with the random state of the next step, and with the same state again in that step.
    """
    variable = graph_variables.tf_variable(variable)
    initializers = [part.initializer for part in graph_variables.components(variable)]
    return [
        operation
        for operation in variable.handle.consumers()
        if operation.type.startswith(("Read", *_UPDATE_PREFIXES))
        and not any(operation is initializer for initializer in initializers)
    ]


def metric_ops(metric: Any, effects: SideEffects) -> tuple[Any, Any]:
    """Returns the (value, update_op) pair of a Keras metric whose `update_state` was called.

    Its variables become local: checkpoints leave them out, and each evaluation initializes them.
    """
    variables = [graph_variables.tf_variable(variable) for variable in metric.variables]
    updates = keras_internals.tf_keras_updates(metric) or effects.updates(variables)
    if not updates:
        raise ValueError(
            "A Keras metric in eval_metric_ops must be updated in model_fn: call its update_state(). "
            f"Received: {metric!r}"
        )
    graph_variables.check_adds_up_replicas(variables, lambda variable: effects.updates([variable]))
    graph_variables.make_local(variables)
    value = current_execution().read_over_replicas(lambda: tf.convert_to_tensor(metric.result()))
    return value, tf.group(*updates)
