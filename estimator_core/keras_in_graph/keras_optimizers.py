"""Optimizers of Keras 3 and tf_keras inside a `tf.Graph`."""

from __future__ import annotations

import contextlib
import copy
import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import eager_tracing, keras_internals
from estimator_core.keras_in_graph.faster_updates import dense, faster_updates, is_known
from estimator_core.keras_in_graph.graph_variables import tf_variable, variable_graph

_FIRST_USE = "_first_use_in_a_graph"  # attribute of optimizers that a graph uses itself
_first_uses = threading.Lock()


def is_keras_optimizer(optimizer: Any) -> bool:
    """Returns whether the object has the interface of a Keras optimizer, of any Keras."""
    return all(hasattr(optimizer, n) for n in ("apply_gradients", "get_config", "variables"))


def in_this_graph(optimizer: Any, iterations: Any = None, itself: bool = False) -> Any:
    """Returns the optimizer, or, if it was made outside of the current graph, a copy in it.

    Keras optimizers own variables (the learning rate, the step count), which belong to one graph.

    `iterations`: variable that a `tf_keras.optimizers.legacy` optimizer counts its steps by, and
    increments, as in tf.estimator 2.15; None means its own. Other Keras optimizers always have their own.
    `itself`: lets the first graph have an unused `tf_keras.optimizers.legacy` optimizer itself, as
    tf.estimator 2.15 did. Other graphs have copies; in 2.15 they were an error.
    """
    if _is_legacy(optimizer) and not hasattr(type(optimizer), "from_config"):  # a mock
        if iterations is not None:
            optimizer.iterations = iterations
        return optimizer
    if _is_legacy(optimizer) and hasattr(optimizer, "weights"):  # one of Keras 3 has none
        legacy = _legacy_in_this_graph(optimizer, itself)
        if iterations is not None and not legacy.weights:  # the first weight is the step count
            legacy.iterations = iterations
        return legacy
    variable = optimizer.variables[0]  # the step count; `iterations` may be calculated from it
    if isinstance(variable, tf.Variable):
        if getattr(optimizer, "use_ema", False):
            raise ValueError(
                "An optimizer of tf_keras can't keep averages of variables (use_ema) in a graph; one of "
                f"Keras 3 can. Received: optimizer={optimizer!r}"
            )
    else:
        variable = variable.value  # Keras 3 wraps the tf.Variable
    if variable_graph(variable) is not None:
        return optimizer
    config = _config(optimizer)
    # Keras numbers its objects: the third Adam of a process is "adam_2". Without the number, the copy's
    # name is the same in every process, and its checkpoint can be found again.
    config["name"] = re.sub(r"_\d+$", "", config["name"])
    with _out_of_control_dependencies():
        return type(optimizer).from_config(config)


def another_in_this_graph(optimizer: Any) -> Any:
    """Returns a copy, for a second part of a model, of an optimizer that the first part uses.

    Only `tf_keras.optimizers.legacy` optimizers that were made outside of the graph are copied.
    """
    use = _first_use(optimizer)
    return optimizer if use is None else use.copy_optimizer(optimizer)


class _FirstUse:
    """The graph that uses an optimizer itself, and a copy from before for other graphs.

    It is an attribute of the optimizer, and left out of copies of it.
    """

    def __init__(self, optimizer: Any) -> None:
        self.graph = weakref.ref(tf1.get_default_graph())
        self._settings = keras_internals.legacy_settings(optimizer)
        self._unused = None
        with contextlib.suppress(ValueError):
            self._unused = _unused_copy(optimizer)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def copy_optimizer(self, optimizer: Any) -> Any:
        """Returns a copy of the optimizer without variables, with the settings that it has now."""
        if self._unused is None:
            raise ValueError(
                "The optimizer is in another graph, or in another part of this model, and can't be "
                f"copied; pass a function that makes it. Received: optimizer={optimizer!r}"
            )
        unused = _unused_copy(self._unused)
        settings = keras_internals.legacy_settings(optimizer)
        changed = {n: value for n, value in settings.items() if value is not self._settings.get(n)}
        keras_internals.update_legacy_settings(unused, changed)
        return unused


def _first_use(optimizer: Any) -> _FirstUse | None:
    return vars(optimizer).get(_FIRST_USE)


def _legacy_in_this_graph(optimizer: Any, itself: bool) -> Any:
    """Returns a `tf_keras.optimizers.legacy` optimizer for the current graph; see `in_this_graph`.

    It creates its variables at first use, so an unused one creates them in the current graph.
    """
    hyperparameters = keras_internals.legacy_hyperparameters(optimizer)
    if hyperparameters is None:
        return type(optimizer).from_config(_config(optimizer))
    if any(tf.is_symbolic_tensor(value) for value in hyperparameters.values()):
        return optimizer  # made in this graph, from a tensor as learning rate
    graph = tf1.get_default_graph()
    if optimizer.weights and variable_graph(optimizer.weights[0]) is graph:
        return optimizer
    has_variables = optimizer.weights or any(
        isinstance(value, tf.Variable) for value in hyperparameters.values()
    )
    use = _first_use(optimizer)  # looked up now: another thread may have created the variables
    if use is None:
        if _holds_graph_tensor(graph, vars(optimizer)):
            return optimizer  # made in this graph, with its own state
        if has_variables:
            return _legacy_from_config(optimizer, hyperparameters)
        if not itself or current_execution().is_in_replica:
            return _unused_copy(optimizer)
        use = _begin_use(optimizer)
    if use.graph() is not graph:
        return use.copy_optimizer(optimizer)
    keras_internals.set_legacy_strategy(optimizer, current_execution().strategy)
    return optimizer


def _begin_use(optimizer: Any) -> _FirstUse:
    """Returns the optimizer's first use, by the current graph unless another thread came first."""
    use = _FirstUse(optimizer)
    with _first_uses:
        first = _first_use(optimizer)
        if first is None:
            keras_internals.keep_legacy_hyperparameters_settable(optimizer)
            first = vars(optimizer)[_FIRST_USE] = use
    return first


def _unused_copy(optimizer: Any) -> Any:
    unused = _read_eagerly(optimizer, lambda: copy.deepcopy(optimizer))
    keras_internals.set_legacy_strategy(unused, current_execution().strategy)
    return unused


def _legacy_from_config(optimizer: Any, hyperparameters: Mapping[str, Any]) -> Any:
    """Returns an optimizer from the configuration of one that has variables, and from its functions."""
    fresh = type(optimizer).from_config(_config(optimizer))
    fresh.gradient_transformers = optimizer.gradient_transformers
    for name, value in hyperparameters.items():
        # The configuration has only the current value of a function.
        if callable(value) and not isinstance(value, tf.Variable):
            setattr(fresh, name, value)
    return fresh


def _holds_graph_tensor(graph: tf.Graph, value: Any) -> bool:
    """Returns whether a value is a tensor of the graph, or a container of one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_graph_tensor(graph, item) for item in value)
    return bool(tf.is_symbolic_tensor(value)) and getattr(value, "graph", None) is graph


def call_with_fresh_names(make_optimizer: Callable[[], Any]) -> Any:
    """Returns the result of the function in the current graph, named as in a new process.

    Keras numbers the objects of a thread in their names, and thus in the names of their variables. A
    new thread restarts the numbers. In one of several replicas the function is called as it is, since
    the replica belongs to the current thread.
    """
    if current_execution().is_in_replica:
        with _out_of_control_dependencies():
            return make_optimizer()
    graph = tf1.get_default_graph()
    scope = graph.get_name_scope()

    def make() -> Any:
        with graph.as_default(), tf.name_scope(f"{scope}/" if scope else ""):
            return make_optimizer()

    return _in_new_thread(make)


def increments(optimizer: Any, step: Any) -> bool:
    """Returns whether the optimizer's updates increment `step`."""
    return _is_legacy(optimizer) and optimizer.iterations is step


def build(optimizer: Any, variables: Sequence[Any]) -> None:
    """Creates the optimizer's variables if it has none yet; some optimizers would create them twice."""
    if hasattr(optimizer, "build") and not getattr(optimizer, "built", False):
        with _out_of_control_dependencies():
            optimizer.build(variables)


def scaled_loss(optimizer: Any, loss: tf.Tensor, variables: Sequence[Any]) -> tf.Tensor:
    """Returns the loss whose gradients to give to `apply_gradients`.

    Keras 3's optimizers that scale the loss divide the gradients by the scale themselves.
    """
    if not hasattr(optimizer, "scale_loss"):
        return loss
    if hasattr(optimizer, "inner_optimizer"):
        build(optimizer, variables)  # the scale is a variable
    return optimizer.scale_loss(loss)


def apply_gradients(
    optimizer: Any,
    grads_and_vars: Sequence[tuple[Any, Any]],
    update_variables: Callable[[Any], Any] | None = None,
) -> tf.Operation:
    """Returns the op of one update.

    `update_variables`: function of such pairs that makes the update, called in a `tf.function`; None means
    the optimizer's `apply_gradients`.
    """
    update_variables = update_variables or optimizer.apply_gradients
    grads_and_vars = current_execution().average_gradients(grads_and_vars)
    if _is_legacy(optimizer):
        return tf.group(optimizer.apply_gradients(grads_and_vars))
    build(optimizer, [variable for _, variable in grads_and_vars])
    if current_execution().is_in_replica:
        return _apply_on_replicas(optimizer, grads_and_vars)

    # Keras returns no op. The call of a function is one, which runs all its side effects in order.
    def update(gradients: Sequence[Any]) -> tf.Tensor:
        variables = [variable for _, variable in grads_and_vars]
        with faster_updates(optimizer):
            update_variables(list(zip(gradients, variables, strict=True)))
        return tf.constant(0)

    gradients = [gradient for gradient, _ in grads_and_vars]
    if is_known(optimizer):
        gradients = [dense(gradient, variable) for gradient, variable in grads_and_vars]
    if eager_tracing.replicas_synchronize_in_graph():
        return tf.function(update, autograph=False)(gradients).op
    return eager_tracing.call_as_one_op(update, gradients).op


def _apply_on_replicas(optimizer: Any, grads_and_vars: Sequence[tuple[Any, Any]]) -> tf.Operation:
    """Returns the op of one update by the sum of the gradients of all replicas.

    Keras synchronizes the replicas within its update, which a function in a graph can't do. Here they
    are synchronized first; a separate function then updates each variable.

    Source: the order of Keras 3: clip the gradients of each replica, sum them, decay the
    weights, update, apply constraints.
    """
    for name in ("use_ema", "gradient_accumulation_steps", "loss_scale_factor", "inner_optimizer"):
        if getattr(optimizer, name, None):
            raise ValueError(
                f"A Keras optimizer with {name} can't be used in the replicas of a tf.distribute strategy. "
                f"Received: optimizer={optimizer!r}"
            )
    if not hasattr(optimizer, "scale_loss"):  # Keras 3 has it
        raise ValueError(
            "In the replicas of a tf.distribute strategy, optimizers of tf_keras must be those of "
            f"tf_keras.optimizers.legacy. Received: optimizer={optimizer!r}"
        )
    pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
    if not pairs:
        raise ValueError("No gradients provided for any variable.")
    variables = [variable for _, variable in pairs]
    gradients = keras_internals.clipped_gradients(optimizer, [gradient for gradient, _ in pairs])
    updates = [
        (gradient, tf_variable(variable), _update_of_one(optimizer, getattr(variable, "constraint", None)))
        for gradient, variable in zip(gradients, variables, strict=True)
    ]
    return current_execution().update_by_sums(updates, tf_variable(optimizer.variables[0]))


def _update_of_one(optimizer: Any, constraint: Any) -> Callable[[Any, Any], tf.Operation]:
    """Returns the function that updates a variable, or its component on a device, by a gradient."""

    def update(variable: Any, gradient: Any) -> tf.Operation:
        def step(gradient: Any) -> tf.Tensor:
            rate = tf.cast(optimizer.learning_rate, variable.dtype)
            decays = keras_internals.decays_weight(optimizer, variable)
            if optimizer.weight_decay is not None and decays:
                variable.assign_sub(variable * optimizer.weight_decay * rate)
            optimizer.update_step(gradient, variable, rate)
            if constraint is not None:
                variable.assign(constraint(variable))
            return tf.constant(0)

        return tf.function(step, autograph=False)(gradient).op

    return update


def _is_legacy(optimizer: Any) -> bool:
    return hasattr(optimizer, "get_updates")


def _config(optimizer: Any) -> dict[str, Any]:
    """Returns the optimizer's configuration, read outside of the current graph."""
    return _read_eagerly(optimizer, optimizer.get_config)


def _read_eagerly(optimizer: Any, function: Callable[[], Any]) -> Any:
    """Returns the result of a function that reads the optimizer's values, called outside of any graph.

    Keras reads a learning rate by `.numpy()`, which works only eagerly; a graph is current in its
    own thread only, so a new thread is eager.
    """
    try:
        return _in_new_thread(function)
    except Exception as error:
        raise ValueError(
            "Can't copy a Keras optimizer into the Estimator's graph; pass a function that makes it. "
            f"Received: optimizer={optimizer!r}"
        ) from error


def _out_of_control_dependencies() -> contextlib.AbstractContextManager[Any]:
    """Returns a context in which variables' initializers don't wait for any update."""
    return tf.control_dependencies(None)


def _in_new_thread(function: Callable[[], Any]) -> Any:
    results: list[Any] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="keras_optimizer")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
