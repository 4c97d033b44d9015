"""One step of a Keras 3 model as operations of a graph: the call, the update, the metrics."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import eager_tracing, graph_variables, keras_internals, keras_optimizers

_Pairs = list[tuple[Any, Any]]


class CallState(keras.StatelessScope):
    """A scope that collects the changes of calling a model as tensors, instead of making them."""

    def __init__(self, model: Any):
        # Keras reads regularized variables only from the scope.
        regularized = [variable for variable in model.variables if variable.regularizer is not None]
        super().__init__(
            [(variable, tf.convert_to_tensor(variable.value)) for variable in regularized],
            collect_losses=True,
        )
        self._values_before = [self.get_current_value(variable) for variable in regularized]

    def new_values(self, variables: Sequence[Any]) -> _Pairs:
        """Returns the updated ones among the variables, with their new values."""
        pairs = [(variable, self.get_current_value(variable)) for variable in variables]
        return [
            (variable, value)
            for variable, value in pairs
            if value is not None and not any(value is old_value for old_value in self._values_before)
        ]


def call(model: Any, inputs: Any, training: bool) -> Any:
    """Returns the outputs of the model, called as by `fit` and `evaluate`."""
    if _takes(model.call, "training"):
        return model(inputs, training=training)
    return model(inputs)


def predict(model: Any, inputs: Any) -> Any:
    """Returns the predicted outputs of the model, as tensors of the current graph."""

    def outputs(inputs: Any) -> Any:
        with keras.StatelessScope():
            return call(model, inputs, training=False)

    return eager_tracing.call_as_function(outputs, inputs)


def train(model: Any, optimizer: Any, inputs: Any, targets: Any, sample_weights: Any) -> tuple[Any, Any, Any]:
    """Returns (outputs, loss, train_op); the train_op also increments the global step."""
    trainable = model.trainable_variables
    if not trainable:
        raise ValueError(f"The Keras model has no trainable variables. Received: {model!r}")
    keras_optimizers.build(optimizer, trainable)
    _make_metrics(model, inputs, targets, sample_weights)
    changed: list[Any] = []

    def compute(inputs: Any, targets: Any, sample_weights: Any) -> Any:
        with tf.GradientTape() as tape, CallState(model) as state:
            outputs = call(model, inputs, training=True)
            loss = _loss(model, inputs, targets, outputs, sample_weights, training=True)
            scaled_loss = optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled_loss, [variable.value for variable in trainable])
        changes = state.new_values(model.variables)
        changed[:] = [variable for variable, _ in changes]
        return outputs, loss, gradients, [value for _, value in changes]

    outputs, loss, gradients, values = eager_tracing.call_as_function(
        compute, inputs, targets, sample_weights
    )
    computed = [loss, *values, *(gradient for gradient in gradients if gradient is not None)]
    values = [graph_variables.merged_value(*pair) for pair in zip(changed, values, strict=True)]
    with tf.control_dependencies(tf.nest.flatten(computed, expand_composites=True)):
        updates = [variable.value.assign(value) for variable, value in zip(changed, values, strict=True)]
        updates.append(
            keras_optimizers.apply_gradients(optimizer, list(zip(gradients, trainable, strict=True)))
        )
    with tf.control_dependencies([tf.group(*updates)]):
        return outputs, loss, tf1.train.get_global_step().assign_add(1, read_value=False)


def evaluate(
    model: Any, inputs: Any, targets: Any, sample_weights: Any
) -> tuple[Any, Any, dict[str, tuple[Any, Any]]]:
    """Returns (outputs, loss, metrics): (value, update_op) of each metric by its name in Keras.

    The means of losses, which Keras lists among the metrics, are left out: an Estimator has its own.
    """
    _make_metrics(model, inputs, targets, sample_weights)
    variables = model.metrics_variables
    changed: list[Any] = []

    def compute(inputs: Any, targets: Any, sample_weights: Any) -> Any:
        with CallState(model) as state:
            outputs = call(model, inputs, training=False)
            loss = _loss(model, inputs, targets, outputs, sample_weights, training=False)
        with keras.StatelessScope(state.new_values(variables)) as after:
            model.compute_metrics(inputs, targets, outputs, sample_weights)
            changes = [(variable, after.get_current_value(variable)) for variable in variables]
        changed[:] = [variable for variable, value in changes if value is not None]
        return outputs, loss, [value for _, value in changes if value is not None]

    outputs, loss, values = eager_tracing.call_as_function(compute, inputs, targets, sample_weights)
    graph_variables.check_adds_up_replicas(changed)
    update = tf.group(
        *(variable.value.assign(value) for variable, value in zip(changed, values, strict=True))
    )
    results: dict[str, Any] = {}
    for metric in model.metrics:
        if not any(metric is other for other in keras_internals.loss_trackers(model)):
            result = current_execution().read_over_replicas(
                functools.partial(eager_tracing.call_as_function, metric.result)
            )
            results.update(result if isinstance(result, dict) else {metric.name: result})
    return outputs, loss, {name: (value, update) for name, value in results.items()}


def _loss(model: Any, inputs: Any, targets: Any, outputs: Any, sample_weights: Any, training: bool) -> Any:
    """Returns the scalar loss, with regularization and added losses, by the model's own method."""
    arguments = {"x": inputs, "y": targets, "y_pred": outputs, "sample_weight": sample_weights}
    if _takes(model.compute_loss, "training"):
        arguments["training"] = training
    return model.compute_loss(**arguments)


def _make_metrics(model: Any, inputs: Any, targets: Any, sample_weights: Any) -> None:
    """Creates the variables of the model's metrics and loss trackers, in the current graph.

    Metrics create them when they first see data. Keras can show them data as shapes only; the creation
    then waits for the end of the outermost scope.
    """
    with graph_variables.local_metrics(), keras.StatelessScope(), eager_tracing.eager_unless_replicated():
        keras_internals.make_metrics(model, (inputs, targets, sample_weights))


def _takes(method: Any, argument: str) -> bool:
    return argument in inspect.signature(method).parameters
