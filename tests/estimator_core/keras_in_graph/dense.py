"""A layer with known weights, and two examples."""

import keras
import numpy as np
import tensorflow as tf

from tests.estimator_core.programs import batch_of

X = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)

Y = np.array([[1.0], [-1.0]], np.float32)

KERNEL = np.array([[0.5], [-0.25]], np.float32)


input_fn = batch_of({"x": X}, Y, repeat=None)


def dense():
    return keras.layers.Dense(1, kernel_initializer=lambda shape, dtype: tf.constant(KERNEL), name="dense")


def eager_kernel(make_optimizer, steps):
    """The kernel after `steps` steps of the same model, in eager Keras."""
    layer, optimizer = dense(), make_optimizer()
    layer.build((None, 2))
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(X) - Y))
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    return layer.kernel.numpy()
