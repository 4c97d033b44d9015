"""(j) A small convolutional network on images of 28 x 28, as a model_fn with tf.nn and variables."""

import math

import numpy as np
import tensorflow as tf

from benchmarks.workloads import dnn, floor
from benchmarks.workloads.training import Training

BATCH_SIZE = 64
CLASSES = 10
EXAMPLES = 6_400
SIDE = 28
SHAPES = {
    "conv_1/kernel": (3, 3, 1, 16),
    "conv_1/bias": (16,),
    "conv_2/kernel": (3, 3, 16, 32),
    "conv_2/bias": (32,),
    "dense/kernel": (7 * 7 * 32, 64),
    "dense/bias": (64,),
    "logits/kernel": (64, CLASSES),
    "logits/bias": (CLASSES,),
}


def batches():
    """Returns (images, labels) as batches in memory: each class has a bright square in its own place."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, EXAMPLES)
    images = rng.normal(size=(EXAMPLES, SIDE, SIDE, 1)).astype(np.float32)
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(label, 4)
        image[8 * row + 1 : 8 * row + 7, 7 * column : 7 * column + 6] += 1.5
    return dnn.in_batches(({"image": images}, labels), BATCH_SIZE)


def input_fn():
    """Returns an endless dataset of batches in memory."""
    return tf.data.Dataset.from_tensor_slices(batches()).repeat().prefetch(tf.data.AUTOTUNE)


def network(parameters, images):
    """Returns logits [batch_size, CLASSES] of images [batch_size, SIDE, SIDE, 1]."""
    hidden = images
    for kernel, bias in (parameters[:2], parameters[2:4]):
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernel, 1, "SAME") + bias)
        hidden = tf.nn.max_pool2d(hidden, 2, 2, "SAME")
    return dnn.dense_layers(parameters[4:], tf.reshape(hidden, [-1, 7 * 7 * 32]))


def mean_loss(logits, labels):
    """Returns the mean cross entropy of a batch."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def make_estimator(estimator, config):
    """Returns an Estimator of the model_fn."""

    def model_fn(features, labels, mode):
        parameters = [
            tf.compat.v1.get_variable(
                name,
                shape,
                initializer=tf.compat.v1.glorot_uniform_initializer()
                if len(shape) > 1
                else tf.zeros_initializer(),
            )
            for name, shape in SHAPES.items()
        ]
        loss = mean_loss(network(parameters, features["image"]), labels)
        optimizer = tf.compat.v1.train.AdamOptimizer(0.001)
        train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return estimator.Estimator(model_fn, config=config)


def make_keras(steps_per_execution, jit_compile):
    """Returns the same network as a Keras model."""
    layers = tf.keras.layers
    image = tf.keras.Input((SIDE, SIDE, 1), name="image")
    hidden = image
    for filters in (16, 32):
        hidden = layers.Conv2D(filters, 3, padding="same", activation="relu")(hidden)
        hidden = layers.MaxPooling2D(2)(hidden)
    hidden = layers.Dense(64, activation="relu")(layers.Flatten()(hidden))
    model = tf.keras.Model({"image": image}, layers.Dense(CLASSES)(hidden))
    model.compile(
        optimizer=tf.keras.optimizers.Adam(),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=steps_per_execution,
        jit_compile=jit_compile,
    )
    return model


def make_floor():
    """Returns the same network for the bare loop."""
    rng = np.random.default_rng(1)

    def initial(shape):
        if len(shape) == 1:
            return np.zeros(shape, np.float32)
        field = math.prod(shape[:-2])
        bound = math.sqrt(6 / (field * (shape[-2] + shape[-1])))
        return rng.uniform(-bound, bound, shape).astype(np.float32)

    def loss(parameters, batch):
        features, labels = batch
        return mean_loss(network(parameters, features["image"]), labels)

    parameters = [initial(shape) for shape in SHAPES.values()]
    return floor.Model(parameters, loss, batches(), floor.Adam())


WORK = Training(BATCH_SIZE, input_fn, make_estimator, make_keras, make_floor, warm_up_steps=100, steps=300)
