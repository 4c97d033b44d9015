"""Variable updates of Keras 3's optimizers with fewer operations.

Keras 3 composes an update of some thirty operations for each variable, to run on any
backend. Ftrl's is one operation of TensorFlow. Most of Adam's are the same for all variables.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.keras_in_graph import keras_internals

Update = Callable[[tf.Tensor, Any, tf.Tensor], None]


def is_known(optimizer: Any) -> bool:
    """Returns whether this module has an update for the optimizer.

    A user's subclass counts as another optimizer, even one of Adam.
    """
    return _fast_update(optimizer) is not None


@contextlib.contextmanager
def faster_updates(optimizer: Any) -> Iterator[None]:
    """Opens a context in which the optimizer updates variables with fewer operations, if `is_known`.

    Keras does all the rest: schedules, clipping, weight decay, averages, accumulated gradients.
    """
    make = _fast_update(optimizer)
    if make is None:
        yield
        return
    faster = make(optimizer)

    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        is_resource = hasattr(variable, "handle")
        if is_resource and not isinstance(gradient, tf.IndexedSlices):
            faster(gradient, variable, learning_rate)
        else:
            type(optimizer).update_step(optimizer, gradient, variable, learning_rate)

    with keras_internals.with_update_step(optimizer, update):
        yield


def dense(gradient: Any, variable: Any) -> Any:
    """Returns the gradient of a variable as a `Tensor`, if that gives the same update.

    Keras 3's Adam and Ftrl update all rows of a variable. But if a row has several gradients, they square
    each of them, where a `Tensor` has their sum.
    """
    if not isinstance(gradient, tf.IndexedSlices) or not are_different(gradient.indices):
        return gradient
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, variable.shape[0])


def _fast_update(optimizer: Any) -> Callable[[Any], Update] | None:
    if "keras.optimizers" not in sys.modules:  # so the optimizer isn't Keras 3's
        return None
    if keras_internals.has_own_update_step(optimizer):
        return None
    from keras import optimizers

    if type(optimizer) in (optimizers.Adam, optimizers.AdamW) and not optimizer.amsgrad:
        return _adam
    if (
        type(optimizer) is optimizers.Ftrl
        and not optimizer.beta
        and not optimizer.l2_shrinkage_regularization_strength
    ):
        return _ftrl
    return None


def _adam(optimizer: Any) -> Update:
    """Returns Adam's update by Keras' formula.

    `ResourceApplyAdam` rounds 1 - beta_2 to float32, which changes the sixth digit.
    """
    rates: dict[Any, tf.Tensor] = {}  # by graph and dtype

    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        def cast(value: Any) -> tf.Tensor:
            return _as_type(value, variable.dtype)

        key = (tf1.get_default_graph(), variable.dtype)
        if key not in rates:
            step = cast(tf.convert_to_tensor(optimizer.iterations) + 1)
            # Keras rounds these two to float32 for variables of any dtype.
            betas = (optimizer.beta_1, optimizer.beta_2)
            power_1, power_2 = (tf.pow(tf.cast(beta, variable.dtype), step) for beta in betas)
            rates[key] = cast(learning_rate) * tf.sqrt(1 - power_2) / (1 - power_1)
        momentum, velocity = keras_internals.optimizer_slots(optimizer, variable, "_momentums", "_velocities")
        gradient = cast(gradient)
        m = momentum + (gradient - momentum) * cast(1 - optimizer.beta_1)
        v = velocity + (tf.square(gradient) - velocity) * cast(1 - optimizer.beta_2)
        momentum.assign(m)
        velocity.assign(v)
        variable.assign_sub(m * rates[key] / (tf.sqrt(v) + cast(optimizer.epsilon)))

    return update


def _ftrl(optimizer: Any) -> Update:
    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        def cast(value: Any) -> tf.Tensor:
            return _as_type(value, variable.dtype)

        accumulator, linear = keras_internals.optimizer_slots(
            optimizer, variable, "_accumulators", "_linears"
        )
        tf.raw_ops.ResourceApplyFtrl(
            var=variable.handle,
            accum=accumulator.handle,
            linear=linear.handle,
            grad=cast(gradient),
            lr=cast(learning_rate),
            l1=cast(optimizer.l1_regularization_strength),
            l2=cast(optimizer.l2_regularization_strength),
            lr_power=cast(optimizer.learning_rate_power),
        )

    return update


def _as_type(value: Any, dtype: tf.DType) -> tf.Tensor:
    """Returns a value in a dtype; a Python number is not rounded to float32 first."""
    if isinstance(value, (int, float)):
        return tf.constant(value, dtype)
    return tf.cast(value, dtype)


def are_different(indices: tf.Tensor) -> bool:
    """Returns whether the row indices of a gradient are known to be unique."""
    while indices.op.type in ("Identity", "Reshape"):
        indices = indices.op.inputs[0]
    return indices.op.type == "Unique" and indices.value_index == 0
