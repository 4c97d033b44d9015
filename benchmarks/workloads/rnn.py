"""(k) RNNClassifier: an LSTM over twenty steps of embedded words."""

import math

import numpy as np
import tensorflow as tf

from benchmarks.workloads import dnn, floor
from benchmarks.workloads.training import Training

BATCH_SIZE = 64
EXAMPLES = 12_800
DIMENSION = 16
LENGTH = 20
UNITS = 32
WORDS = 100


def batches():
    """Returns (features, labels) as batches; the label depends more on late words than on early ones."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, WORDS, (EXAMPLES, LENGTH))
    opinions = rng.normal(size=WORDS)[words] * np.linspace(0, 1, LENGTH)
    labels = (opinions.sum(1) > 0).astype(np.int64)[:, None]
    return dnn.in_batches(({"words": words}, labels), BATCH_SIZE)


def input_fn():
    """Returns an endless dataset of batches in memory."""
    return tf.data.Dataset.from_tensor_slices(batches()).repeat().prefetch(tf.data.AUTOTUNE)


def make_estimator(estimator, config):
    """Returns the classifier, with its default optimizer: Adagrad with clipped gradients."""
    words = tf.feature_column.sequence_categorical_column_with_identity("words", WORDS)
    return estimator.experimental.RNNClassifier(
        [tf.feature_column.embedding_column(words, DIMENSION)], units=[UNITS], cell_type="lstm", config=config
    )


def make_keras(steps_per_execution, jit_compile):
    """Returns the same network as a Keras model."""
    words = tf.keras.Input((LENGTH,), name="words", dtype="int64")
    spread = tf.keras.initializers.TruncatedNormal(stddev=1 / math.sqrt(DIMENSION))
    embedded = tf.keras.layers.Embedding(WORDS, DIMENSION, spread)(words)
    last = tf.keras.layers.LSTM(UNITS)(embedded)
    model = tf.keras.Model({"words": words}, tf.keras.layers.Dense(1)(last))
    model.compile(
        optimizer=tf.keras.optimizers.Adagrad(0.05, clipnorm=5.0),
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
        jit_compile=jit_compile,
    )
    return model


def make_floor():
    """Returns the same network for the bare loop, with its steps unrolled."""
    rng = np.random.default_rng(1)
    bias = np.zeros(4 * UNITS, np.float32)
    bias[UNITS : 2 * UNITS] = 1  # an LSTM starts by remembering
    recurrent, _ = np.linalg.qr(rng.normal(size=(4 * UNITS, UNITS)))
    parameters = [
        rng.normal(0, 1 / math.sqrt(DIMENSION), (WORDS, DIMENSION)),
        dnn.glorot(rng, DIMENSION, 4 * UNITS),
        recurrent.T,
        bias,
        dnn.glorot(rng, UNITS, 1),
        np.zeros(1, np.float32),
    ]

    def loss(parameters, batch):
        features, labels = batch
        table, kernel, recurrent, bias, *last = parameters
        embedded = tf.gather(table, features["words"]) @ kernel + bias
        output = carry = tf.zeros([BATCH_SIZE, UNITS])
        for step in range(LENGTH):
            gates = tf.split(embedded[:, step] + output @ recurrent, 4, axis=1)
            write, keep, show = (tf.sigmoid(gates[index]) for index in (0, 1, 3))
            carry = keep * carry + write * tf.tanh(gates[2])
            output = show * tf.tanh(carry)
        return dnn.binary_loss(dnn.dense_layers(last, output), labels)

    return floor.Model(parameters, loss, batches(), floor.Adagrad())


WORK = Training(BATCH_SIZE, input_fn, make_estimator, make_keras, make_floor, warm_up_steps=300, steps=500)
