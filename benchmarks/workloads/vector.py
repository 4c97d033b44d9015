"""A DNN on one vector of numbers, for any batch size and length, to measure the growth of a step's cost."""

import numpy as np
import tensorflow as tf

from benchmarks.workloads import dnn, floor
from benchmarks.workloads.training import Training

HIDDEN_UNITS = [64, 32]
_RESIDENT_BYTES = 2**27


def batches(batch_size, features):
    """Returns (features, labels) as batches in memory: at least 2, at most 64 and at most 128 MiB of them."""
    number = int(np.clip(_RESIDENT_BYTES // (4 * batch_size * features), 2, 64))
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((number, batch_size, features), np.float32)
    labels = (numbers[..., :1] * numbers[..., 1:2] + numbers[..., 2:3] > 0).astype(np.int64)
    return {"numbers": numbers}, labels


def work(batch_size, features, steps=None):
    """Returns the `Training` of a batch size and a length of the vector."""
    if steps is None:  # about as many numbers for each size, within a measurable time
        steps = int(np.clip(2e8 / (batch_size * (features + 64)), 100, 2000)) // 100 * 100

    def input_fn():
        return tf.data.Dataset.from_tensor_slices(batches(batch_size, features)).repeat().prefetch(2)

    def make_estimator(estimator, config):
        column = tf.feature_column.numeric_column("numbers", (features,))
        return estimator.DNNClassifier(HIDDEN_UNITS, [column], config=config, optimizer="Adam")

    def make_keras(steps_per_execution, jit_compile):
        numbers = tf.keras.Input((features,), name="numbers")
        hidden = numbers
        for units in HIDDEN_UNITS:
            hidden = tf.keras.layers.Dense(units, activation="relu")(hidden)
        model = tf.keras.Model({"numbers": numbers}, tf.keras.layers.Dense(1)(hidden))
        model.compile(
            optimizer=tf.keras.optimizers.Adam(),
            loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
            steps_per_execution=steps_per_execution,
            jit_compile=jit_compile,
        )
        return model

    def make_floor():
        def loss(parameters, batch):
            values, labels = batch
            return dnn.binary_loss(dnn.dense_layers(parameters, values["numbers"]), labels)

        layers = dnn.initial_layers(np.random.default_rng(1), [features, *HIDDEN_UNITS, 1])
        return floor.Model(layers, loss, batches(batch_size, features), floor.Adam())

    return Training(
        batch_size,
        input_fn,
        make_estimator,
        make_keras,
        make_floor,
        warm_up_steps=steps // 5,  # both are multiples of the 20 steps of an execution
        steps=steps,
    )
