"""The names of tf.contrib that a project uses, by functions of TensorFlow 2.15, which has no tf.contrib."""

import types

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import lookup_ops


class _HParams(types.SimpleNamespace):
    def parse(self, text):
        for assignment in text.split(","):
            name, value = assignment.split("=")
            setattr(self, name, type(getattr(self, name))(value))
        return self


def _clip_gradients_by_norm(optimizer, clip_norm):
    apply_gradients = optimizer.apply_gradients

    def apply_clipped(grads_and_vars, *args, **kwargs):
        gradients, variables = zip(*grads_and_vars)  # noqa: B905 - Python 3.9
        clipped, _ = tf.clip_by_global_norm(gradients, clip_norm)
        return apply_gradients(list(zip(clipped, variables)), *args, **kwargs)  # noqa: B905

    optimizer.apply_gradients = apply_clipped
    return optimizer


def _forward_features(estimator, key):
    def model_fn(features, labels, mode, config):
        spec = estimator.model_fn(features, labels, mode, config)
        spec.predictions[key] = features[key]
        return spec

    return tf.estimator.Estimator(model_fn, estimator.model_dir, estimator.config)


def _optimize_loss(loss, global_step, learning_rate, optimizer, clip_gradients):
    assert optimizer == "Adam"
    with tf.variable_scope("OptimizeLoss"):
        initializer = tf.constant_initializer(learning_rate)
        rate = tf.get_variable("learning_rate", [], trainable=False, initializer=initializer)
        adam = tf.train.AdamOptimizer(rate)
        gradients, variables = zip(*adam.compute_gradients(loss))  # noqa: B905
        clipped, norm = tf.clip_by_global_norm(gradients, clip_gradients)
        tf.summary.scalar("global_norm/gradient_norm", norm)
        tf.summary.scalar("global_norm/clipped_gradient_norm", tf.linalg.global_norm(clipped))
        tf.summary.scalar("loss", loss)
        return adam.apply_gradients(zip(clipped, variables), global_step, "train")  # noqa: B905


estimator = types.SimpleNamespace(
    add_metrics=tf.estimator.add_metrics,
    clip_gradients_by_norm=_clip_gradients_by_norm,
    forward_features=_forward_features,
)
layers = types.SimpleNamespace(
    l2_regularizer=lambda scale: lambda weights: scale * tf.reduce_sum(weights**2) / 2,
    optimize_loss=_optimize_loss,
)
lookup = types.SimpleNamespace(
    index_table_from_tensor=lambda mapping: lookup_ops.index_table_from_tensor(mapping)
)
training = types.SimpleNamespace(HParams=_HParams)
