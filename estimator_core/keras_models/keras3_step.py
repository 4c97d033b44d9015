"""One step of a Keras 3 model as operations of a graph: the call, the update, the metrics."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from estimator_core import keras_optimizers, tf1


class CallState(keras.StatelessScope):
    """What calling a model changes, as tensors, in place of changing it.

    Args:
        model: The Keras model that is called within this scope.
    """

    def __init__(self, model: Any):
        # Keras takes the values of regularized variables from the scope alone.
        regularized = [variable for variable in model.variables if variable.regularizer is not None]
        super().__init__(
            [(variable, tf.convert_to_tensor(variable.value)) for variable in regularized],
            collect_losses=True,
        )
        self._values_before = [self.get_current_value(variable) for variable in regularized]

    def new_values(self, variables: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Returns those of the variables that were updated, with their new values."""
        pairs = [(variable, self.get_current_value(variable)) for variable in variables]
        return [
            (variable, value)
            for variable, value in pairs
            if value is not None and not any(value is before for before in self._values_before)
        ]


def call(model: Any, inputs: Any, training: bool) -> Any:
    """Returns the outputs of the model, called as `fit` and `evaluate` call it."""
    if _takes(model.call, "training"):
        return model(inputs, training=training)
    return model(inputs)


def compute_loss(
    model: Any, inputs: Any, targets: Any, outputs: Any, sample_weights: Any, training: bool
) -> Any:
    """Returns the scalar loss, with regularization and added losses, by the model's own method."""
    arguments = {"x": inputs, "y": targets, "y_pred": outputs, "sample_weight": sample_weights}
    if _takes(model.compute_loss, "training"):
        arguments["training"] = training
    return model.compute_loss(**arguments)


def train_op(
    model: Any,
    optimizer: Any,
    state: CallState,
    loss: Any,
    grads_and_vars: Sequence[tuple[Any, Any]],
) -> Any:
    """Returns the op that updates the model and increments the global step.

    Args:
        model: The Keras model.
        optimizer: Its optimizer, in the same graph.
        state: The scope of the call, which knows the new values of what is not trained by gradients.
        loss: The loss; it and the gradients are there before anything changes.
        grads_and_vars: Gradients with the trainable variables.

    Raises:
        ValueError: There is nothing to train.
    """
    if not grads_and_vars:
        raise ValueError(f"The Keras model has no trainable variables. Received: {model!r}")
    optimizer.build([variable for _, variable in grads_and_vars])
    new_values = state.new_values(model.variables)
    computed = [loss, *(value for _, value in new_values)]
    computed += [gradient for gradient, _ in grads_and_vars if gradient is not None]
    with tf.control_dependencies(tf.nest.flatten(computed, expand_composites=True)):
        updates = [variable.value.assign(value) for variable, value in new_values]
        updates.append(keras_optimizers.apply_gradients(optimizer, grads_and_vars))
    with tf.control_dependencies([tf.group(*updates)]):
        return tf1.train.get_global_step().assign_add(1, read_value=False)


def metric_ops(
    model: Any,
    state: CallState,
    inputs: Any,
    targets: Any,
    outputs: Any,
    sample_weights: Any,
) -> dict[str, tuple[Any, Any]]:
    """Returns (value, update_op) of each metric by Keras' own name, without those of the losses.

    Args:
        model: The compiled Keras model.
        state: The scope of the call, in which metrics of its layers may have been updated.
        inputs: What the model was called with.
        targets: The labels.
        outputs: What the model returned.
        sample_weights: The weights; None weighs all alike.
    """

    def compute() -> None:
        model.compute_metrics(inputs, targets, outputs, sample_weights)

    compute()  # metrics make their variables at first use; these updates are never run
    variables = model.metrics_variables
    with keras.StatelessScope(state.new_values(variables)) as after:
        compute()
    new_values = [(variable, after.get_current_value(variable)) for variable in variables]
    update = tf.group(
        *(variable.value.assign(value) for variable, value in new_values if value is not None)
    )
    losses = _loss_trackers(model)
    values: dict[str, Any] = {}
    for metric in model.metrics:
        if not any(metric is other for other in losses):
            result = metric.result()
            values.update(result if isinstance(result, dict) else {metric.name: result})
    return {name: (tf.convert_to_tensor(value), update) for name, value in values.items()}


def _loss_trackers(model: Any) -> list[Any]:
    """Returns the means of losses that Keras counts among the metrics; an Estimator has its own."""
    names = ("_loss_tracker", "_compile_loss")  # no public name gives these
    tracker, losses = (getattr(model, name, None) for name in names)
    return [tracker, *(losses.metrics if losses is not None else [])]


def _takes(method: Any, argument: str) -> bool:
    return argument in inspect.signature(method).parameters
