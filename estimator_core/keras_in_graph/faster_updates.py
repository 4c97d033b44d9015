"""Updates of variables by optimizers of Keras 3, in fewer operations of TensorFlow.

Keras 3 puts an update together from some thirty operations for each variable, so that it runs on any
backend. Ftrl's is one operation of TensorFlow. In Adam's, most are the same for all variables.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.sparse_gradients import are_different
from estimator_core.keras_in_graph import keras_internals

Update = Callable[[tf.Tensor, Any, tf.Tensor], None]


def is_known(optimizer: Any) -> bool:
    """Returns whether there are such updates for the optimizer.

    A class of the user's own is another optimizer, even below Adam.
    """
    return _update_of(optimizer) is not None


@contextlib.contextmanager
def faster_updates(optimizer: Any) -> Iterator[None]:
    """Has the optimizer update variables in fewer operations in this context, if `is_known`.

    All else is done by Keras: schedules, clipping, weight decay, averages, accumulated gradients.

    Args:
        optimizer: A Keras optimizer that is built.
    """
    make = _update_of(optimizer)
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
    """Returns a variable's gradient as a `Tensor`, if that changes nothing.

    Adam and Ftrl of Keras 3 change all rows of a variable. But they square each of several gradients of a
    row, where a `Tensor` has their sum.
    """
    if not isinstance(gradient, tf.IndexedSlices) or not are_different(gradient.indices):
        return gradient
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, variable.shape[0])


def _update_of(optimizer: Any) -> Callable[[Any], Update] | None:
    if "keras.optimizers" not in sys.modules:  # nobody can have made an optimizer of it
        return None
    if keras_internals.has_update_step_of_its_own(optimizer):
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
    """Returns Adam's update by Keras's formula.

    `ResourceApplyAdam` is none for it: it rounds 1 - beta_2 to float32, which changes the sixth digit.
    """
    rates: dict[Any, tf.Tensor] = {}  # the same for all variables of a type in a graph

    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        def cast(value: Any) -> tf.Tensor:
            return _as_type(value, variable.dtype)

        key = (tf1.get_default_graph(), variable.dtype)
        if key not in rates:
            step = cast(tf.convert_to_tensor(optimizer.iterations) + 1)
            # Keras rounds these two to float32 for variables of any type.
            betas = (optimizer.beta_1, optimizer.beta_2)
            power_1, power_2 = (tf.pow(tf.cast(beta, variable.dtype), step) for beta in betas)
            rates[key] = cast(learning_rate) * tf.sqrt(1 - power_2) / (1 - power_1)
        momentum, velocity = keras_internals.slots_of(
            optimizer, variable, "_momentums", "_velocities"
        )
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

        accumulator, linear = keras_internals.slots_of(
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
    """Returns a value of a type; a number of Python is not rounded to float32 on its way to float64."""
    if isinstance(value, (int, float)):
        return tf.constant(value, dtype)
    return tf.cast(value, dtype)
