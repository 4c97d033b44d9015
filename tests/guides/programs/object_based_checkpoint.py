"""A model_fn that saves a tf.train.Checkpoint, which is then read without the Estimator."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

MODEL_DIR = "./temperatures/"


def readings():
    """Returns pairs of degrees: Celsius, and the other three scales."""
    celsius = tf.linspace([-10.0], [10.0], 12)
    others = celsius * [1.8, 1.0, 0.8] + [32.0, 273.15, 0.0]
    return tf.data.Dataset.from_tensor_slices({"celsius": celsius, "others": others}).repeat().batch(3)


class Scales(tf.keras.Model):
    """Converts degrees to three scales at a time."""

    def __init__(self):
        super().__init__()
        self.convert = tf.keras.layers.Dense(3)

    def call(self, celsius):
        return self.convert(celsius)


def model_fn(features, labels, mode):
    scales = Scales()
    optimizer = tf.keras.optimizers.Adam(0.05)
    checkpoint = tf.train.Checkpoint(step=tf1.train.get_global_step(), optimizer=optimizer, model=scales)
    with tf.GradientTape() as tape:
        errors = scales(features["celsius"]) - features["others"]
        loss = tf.reduce_mean(tf.abs(errors))
    weights = scales.trainable_variables
    update = optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=tf.group(update, checkpoint.step.assign_add(1)),
        scaffold=tf1.train.Scaffold(saver=checkpoint),  # so the files are those of the checkpoint
    )


tf.keras.backend.clear_session()
estimator = tf.estimator.Estimator(model_fn, MODEL_DIR)
estimator.train(readings, steps=14)

scales = Scales()
checkpoint = tf.train.Checkpoint(
    step=tf.Variable(0, dtype=tf.int64), optimizer=tf.keras.optimizers.Adam(0.05), model=scales
)
checkpoint.restore(tf.train.latest_checkpoint(MODEL_DIR))
print("trained for", checkpoint.step.numpy(), "steps")
