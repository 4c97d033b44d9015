"""A Keras model with a fixed body, trained as an Estimator: are these pictures of day or night?"""

import numpy as np
import tensorflow as tf

SIDE = 64

body = tf.keras.applications.MobileNetV2(
    input_shape=(SIDE, SIDE, 3), include_top=False, weights=None, alpha=0.35
)
body.trainable = False
model = tf.keras.Sequential([body, tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(1)])
model.compile(
    optimizer="adam", loss=tf.keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"]
)
estimator = tf.keras.estimator.model_to_estimator(keras_model=model)


def scale(picture, is_day):
    picture = tf.cast(picture, tf.float32) / 127.5 - 1
    return tf.image.resize(picture, (SIDE, SIDE)), is_day


def pictures(batch_size):
    """Returns batches of pictures of all sizes; those of the day are brighter."""

    def draw():
        random = np.random.default_rng(0)
        for number in range(800):
            is_day = number % 2
            size = (50 + number % 7, 80, 3)
            yield (random.integers(0, 90, size) + 140 * is_day).astype(np.uint8), is_day

    signature = (tf.TensorSpec([None, None, 3], tf.uint8), tf.TensorSpec([], tf.int64))
    drawn = tf.data.Dataset.from_generator(draw, output_signature=signature)
    return drawn.map(scale).shuffle(200).batch(batch_size)


estimator.train(input_fn=lambda: pictures(16), steps=30)
estimator.evaluate(input_fn=lambda: pictures(16), steps=5)
