"""Wraps the `_model_fn` of a finished Estimator, to train it on adversarial neighbors as well."""

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(11)
X = RNG.randn(80, 3).astype(np.float32)
Y = (X @ [[1.0], [-2.0], [0.5]] + 0.3 * RNG.randn(80, 1) > 0).astype(np.int64)
STEP, MULTIPLIER = 0.2, 0.7


def input_fn(num_epochs=1):
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(num_epochs).batch(16)


def add_adversarial_regularization(estimator, optimizer_fn):
    base = estimator._model_fn
    calls = []

    def model_fn(features, labels, mode, config):
        calls.append(mode)
        spec = base(features, labels, mode, config=config)
        if mode != tf.estimator.ModeKeys.TRAIN:
            return spec
        (gradient,) = tf.gradients(spec.loss, [features["x"]])
        size = tf.norm(gradient, axis=1, keepdims=True) + 1e-6
        neighbor = tf.stop_gradient(features["x"] + STEP * gradient / size)
        with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE, auxiliary_name_scope=False):
            other = base({"x": neighbor}, labels, mode, config=config)
        loss = spec.loss + MULTIPLIER * other.loss
        tf.summary.scalar("adversarial_loss", other.loss)
        train_op = optimizer_fn().minimize(loss, tf.train.get_global_step())
        return spec._replace(loss=loss, train_op=train_op)

    estimator._model_fn = model_fn
    return estimator, calls


def main():
    config = tf.estimator.RunConfig("model", save_summary_steps=100, save_checkpoints_steps=10)
    estimator = tf.estimator.LinearClassifier(
        [tf.feature_column.numeric_column("x", shape=[3])],
        optimizer=lambda: tf.train.GradientDescentOptimizer(0.0),
        config=config,
    )
    estimator, calls = add_adversarial_regularization(
        estimator, lambda: tf.train.MomentumOptimizer(0.01, 0.5)
    )
    estimator.train(lambda: input_fn(4))
    weights = estimator.get_variable_value("linear/linear_model/x/weights").tolist()
    metrics = estimator.evaluate(input_fn)
    return {"calls": calls, "metrics": metrics, "weights": weights}
