"""Updates of variables by optimizers of Keras 3, each in one operation of TensorFlow.

Keras 3 puts an update together from some twenty operations, so that it runs on any backend. TensorFlow has
the updates of Adam and Ftrl as one operation each, which computes the same up to rounding.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.small_adam_updates import is_small
from estimator_core.execution.sparse_gradients import are_different
from estimator_core.keras_in_graph import keras_internals

Update = Callable[[tf.Tensor, Any, tf.Tensor], None]


def is_fused(optimizer: Any) -> bool:
    """Returns whether there is one operation for what the optimizer does to a variable.

    A class of the user's own is another optimizer, even below Adam.
    """
    return _update_of(optimizer) is not None


@contextlib.contextmanager
def fused_updates(optimizer: Any) -> Iterator[None]:
    """Has the optimizer update variables by one operation each in this context, if `is_fused`.

    All else is done by Keras: schedules, clipping, weight decay, averages, accumulated gradients.

    Args:
        optimizer: A Keras optimizer that is built.
    """
    make = _update_of(optimizer)
    if make is None:
        yield
        return
    fused = make(optimizer)

    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        is_resource = hasattr(variable, "handle")
        if is_resource and not isinstance(gradient, tf.IndexedSlices):
            fused(gradient, variable, learning_rate)
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
    powers: dict[Any, list[tf.Tensor]] = {}  # the same for all variables of a type in a graph

    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        dtype = variable.dtype

        def cast(value: Any) -> tf.Tensor:
            return tf.cast(value, dtype)

        gradient = cast(gradient)

        momentum, velocity = keras_internals.slots_of(
            optimizer, variable, "_momentums", "_velocities"
        )
        key = (tf1.get_default_graph(), dtype)
        if key not in powers:
            step = cast(tf.convert_to_tensor(optimizer.iterations) + 1)
            powers[key] = [
                tf.pow(cast(beta), step) for beta in (optimizer.beta_1, optimizer.beta_2)
            ]
        beta_1_power, beta_2_power = powers[key]
        if is_small(variable.shape):
            alpha = cast(learning_rate) * tf.sqrt(1 - beta_2_power) / (1 - beta_1_power)
            m = momentum + (gradient - momentum) * (1 - cast(optimizer.beta_1))
            v = velocity + (tf.square(gradient) - velocity) * (1 - cast(optimizer.beta_2))
            momentum.assign(m)
            velocity.assign(v)
            variable.assign_sub(m * alpha / (tf.sqrt(v) + cast(optimizer.epsilon)))
            return
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=momentum.handle,
            v=velocity.handle,
            beta1_power=beta_1_power,
            beta2_power=beta_2_power,
            lr=cast(learning_rate),
            beta1=cast(optimizer.beta_1),
            beta2=cast(optimizer.beta_2),
            epsilon=cast(optimizer.epsilon),
            grad=gradient,
        )

    return update


def _ftrl(optimizer: Any) -> Update:
    def update(gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        def cast(value: Any) -> tf.Tensor:
            return tf.cast(value, variable.dtype)

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
