"""(a) A DNN of two layers on three numbers and two embeddings, from memory; (e) the same as a Keras model."""

import dataclasses
import itertools
import math

import numpy as np
import tensorflow as tf

from benchmarks.workloads import floor
from benchmarks.workloads.training import Training

BATCH_SIZE = 128
HIDDEN_UNITS = [64, 32]
EXAMPLES = 50_000
CATEGORIES = {"a": 100, "b": 1000}
EMBEDDING_DIMENSION = 8
NUMBERS = ("x", "y", "z")


def arrays(rows=EXAMPLES):
    """Returns (features, labels) of `rows` rows: values [rows, 1]."""
    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=(rows, 1)).astype(np.float32) for name in NUMBERS}
    for name, size in CATEGORIES.items():
        features[name] = rng.integers(0, size, (rows, 1))
    labels = (features["x"] + features["y"] * (features["a"] % 3) > 0).astype(np.int64)
    return features, labels


def input_fn():
    """Returns an endless dataset of (features, label) batches from memory."""
    examples = tf.data.Dataset.from_tensor_slices(arrays())
    return examples.shuffle(10_000, seed=0).repeat().batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


def feature_columns():
    """Returns three numeric columns and two embedding columns."""
    columns = [tf.feature_column.numeric_column(name) for name in NUMBERS]
    for name, size in CATEGORIES.items():
        ids = tf.feature_column.categorical_column_with_identity(name, size)
        columns.append(tf.feature_column.embedding_column(ids, EMBEDDING_DIMENSION))
    return columns


def make_estimator(estimator, config):
    """Returns a DNNClassifier."""
    return estimator.DNNClassifier(HIDDEN_UNITS, feature_columns(), config=config, optimizer="Adam")


def make_keras(steps_per_execution=1, jit_compile=False):
    """Returns the same network as a Keras model, with the same distributions of initial values."""
    inputs = {name: tf.keras.Input((1,), name=name) for name in NUMBERS}
    parts = list(inputs.values())
    spread = tf.keras.initializers.TruncatedNormal(stddev=1 / math.sqrt(EMBEDDING_DIMENSION))
    for name, size in CATEGORIES.items():
        inputs[name] = tf.keras.Input((1,), name=name, dtype="int64")
        embed = tf.keras.layers.Embedding(size, EMBEDDING_DIMENSION, spread)
        parts.append(tf.keras.layers.Flatten()(embed(inputs[name])))
    hidden = tf.keras.layers.Concatenate()(parts)
    for units in HIDDEN_UNITS:
        hidden = tf.keras.layers.Dense(units, activation="relu")(hidden)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))
    model.compile(
        optimizer=tf.keras.optimizers.Adam(),
        loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
        jit_compile=jit_compile,
    )
    return model


def dense_layers(parameters, hidden):
    """Returns the logits of ReLU layers, from alternating kernels and biases, and a linear layer."""
    pairs = list(zip(parameters[::2], parameters[1::2], strict=True))
    for kernel, bias in pairs[:-1]:
        hidden = tf.nn.relu(hidden @ kernel + bias)
    return hidden @ pairs[-1][0] + pairs[-1][1]


def glorot(rng, *shape):
    """Returns uniform initial values of a kernel. Source: Glorot and Bengio, 2010."""
    bound = math.sqrt(6 / (shape[-2] + shape[-1]))
    return rng.uniform(-bound, bound, shape).astype(np.float32)


def initial_layers(rng, sizes):
    """Returns the initial kernels and biases of dense layers with `sizes` units, from the inputs on."""
    pairs = [(glorot(rng, *pair), np.zeros(pair[1], np.float32)) for pair in itertools.pairwise(sizes)]
    return [value for pair in pairs for value in pair]


def in_batches(arrays, batch_size):
    """Returns a structure of arrays [rows, ...] as arrays [batches, batch_size, ...]."""

    def stack(values):
        whole = len(values) // batch_size * batch_size
        return values[:whole].reshape(-1, batch_size, *values.shape[1:])

    return tf.nest.map_structure(stack, arrays)


def binary_loss(logits, labels):
    """Returns the mean cross entropy of a batch; both [batch_size, 1]."""
    labels = tf.cast(labels, tf.float32)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, logits))


def make_floor():
    """Returns the same network for the bare loop."""
    rng = np.random.default_rng(1)
    tables = [
        rng.normal(0, 1 / math.sqrt(EMBEDDING_DIMENSION), (size, EMBEDDING_DIMENSION))
        for size in CATEGORIES.values()
    ]
    width = len(NUMBERS) + EMBEDDING_DIMENSION * len(CATEGORIES)

    def loss(parameters, batch):
        features, labels = batch
        parts = [features[name] for name in NUMBERS]
        for name, table in zip(CATEGORIES, parameters[: len(CATEGORIES)], strict=True):
            parts.append(tf.gather(table, features[name][:, 0]))
        logits = dense_layers(parameters[len(CATEGORIES) :], tf.concat(parts, 1))
        return binary_loss(logits, labels)

    layers = initial_layers(rng, [width, *HIDDEN_UNITS, 1])
    return floor.Model([*tables, *layers], loss, in_batches(arrays(), BATCH_SIZE), floor.Adam())


WORK = Training(BATCH_SIZE, input_fn, make_estimator, make_keras, make_floor)


def make_estimator_of_keras_model(estimator, config):
    """Returns an Estimator of the Keras model."""
    if not hasattr(estimator, "model_to_estimator"):  # tf.estimator has it under Keras
        estimator = tf.keras.estimator
    return estimator.model_to_estimator(make_keras(), config=config)


KERAS_MODEL = dataclasses.replace(WORK, make_estimator=make_estimator_of_keras_model, make_floor=None)
