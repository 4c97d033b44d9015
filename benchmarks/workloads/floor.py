"""The floor: the same operations in one loop in a function, on batches in memory.

No Estimator and no Keras, no input pipeline, no hooks: the cost of the training step alone.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Model:
    """A network and its data."""

    parameters: Sequence[Any]  # Initial values, float32
    # Function from the parameters and a batch to the mean loss of the batch
    loss: Callable[[Sequence[Any], Any], Any]
    batches: Any  # A structure of arrays [batches, batch_size, ...]
    optimizer: Any  # Optimizer, which changes the parameters


@dataclasses.dataclass(frozen=True)
class Adam:
    """Adam. Source: Kingma and Ba, 2015, with epsilon outside the correction as in Keras."""

    learning_rate: float = 0.001
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7

    def slots(self, parameter):
        """Returns the initial moments of a parameter."""
        return [tf.zeros_like(parameter), tf.zeros_like(parameter)]

    def update(self, parameter, slots, gradient, step):
        """Returns the parameter and its moments after a step; the first step is number 1."""
        mean, square = slots
        mean += (gradient - mean) * (1 - self.beta_1)
        square += (tf.square(gradient) - square) * (1 - self.beta_2)
        step = tf.cast(step, tf.float32)
        rate = self.learning_rate * tf.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        return parameter - rate * mean / (tf.sqrt(square) + self.epsilon), [mean, square]


@dataclasses.dataclass(frozen=True)
class Adagrad:
    """Adagrad, with the gradient of each parameter clipped to a norm. Source: Duchi et al., 2011."""

    learning_rate: float = 0.05
    initial: float = 0.1
    clipnorm: float = 5.0
    epsilon: float = 1e-7

    def slots(self, parameter):
        """Returns the initial sum of squares of a parameter."""
        return [tf.fill(tf.shape(parameter), self.initial)]

    def update(self, parameter, slots, gradient, step):
        """Returns the parameter and its sum of squares after a step."""
        del step
        gradient = tf.clip_by_norm(gradient, self.clipnorm)
        total = slots[0] + tf.square(gradient)
        change = self.learning_rate * gradient / tf.sqrt(total + self.epsilon)
        return parameter - change, [total]


class Loop:
    """Trains a Model, many steps in one call."""

    def __init__(self, model, jit_compile):
        self._model = model
        # A function's arguments are not folded as constants; captured values would be.
        self._batches = tf.nest.map_structure(tf.constant, model.batches)
        self._number = int(tf.nest.flatten(self._batches)[0].shape[0])
        self.parameters = [tf.constant(value, tf.float32) for value in model.parameters]
        self._slots = [model.optimizer.slots(value) for value in self.parameters]
        self.steps = 0
        self._advance = tf.function(self._many, jit_compile=jit_compile, autograph=False)

    def run(self, steps):
        """Runs `steps` steps in one call, and waits for their end."""
        bounds = tf.constant(self.steps), tf.constant(self.steps + steps)
        self.parameters, self._slots = self._advance(self.parameters, self._slots, self._batches, *bounds)
        self.parameters[0].numpy()
        self.steps += steps

    def mean_loss(self, batches):
        """Returns the mean of the losses of the first `batches` batches."""
        losses = [
            self._model.loss(self.parameters, self._batch(self._batches, index % self._number))
            for index in range(batches)
        ]
        return float(tf.reduce_mean(losses))

    def _batch(self, batches, index):
        return tf.nest.map_structure(lambda values: tf.gather(values, index), batches)

    def _many(self, parameters, slots, batches, first, end):
        def body(step, parameters, slots):
            batch = self._batch(batches, step % self._number)
            with tf.GradientTape() as tape:
                tape.watch(parameters)
                loss = self._model.loss(parameters, batch)
            gradients = [tf.convert_to_tensor(one) for one in tape.gradient(loss, parameters)]
            updated = [
                self._model.optimizer.update(*both, step + 1)
                for both in zip(parameters, slots, gradients, strict=True)
            ]
            return step + 1, [value for value, _ in updated], [moments for _, moments in updated]

        state = tf.while_loop(lambda step, *_: step < end, body, (first, parameters, slots))
        return state[1:]
