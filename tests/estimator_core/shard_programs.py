"""A model for shards whose numbers are worked out by hand, and its inputs."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from tests.estimator_core.programs import zeros


def model_fn(features, labels, mode, params):
    """prediction = weight * x; the weight is 0 at first, and its gradient is -2 * mean(x * labels)."""
    prediction = zeros("weight") * features["x"]
    if mode == est.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": prediction, "x": features["x"]})
    loss = tf.reduce_mean(tf.square(prediction - labels))
    if mode == est.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, prediction]))
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, **{"rate": 0.125, **params}))


def shared_descent(loss, rate, reduction=tf1.losses.Reduction.MEAN, **_):
    """A training step with the gradients of all shards."""
    optimizer = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(rate), reduction)
    return optimizer.minimize(loss, tf1.train.get_global_step())


def noting(spec, value, seen):
    """The spec with a host call that adds the value of each step to a list."""

    def note(value):
        return tf1.py_func(lambda value: seen.append(value.tolist()) or 0, [value], tf.int64)

    return spec._replace(host_call=(note, [value]))


def metric_fn(labels, prediction):
    return {
        "mae": tf1.metrics.mean_absolute_error(labels, prediction),
        "batch_size": tf1.metrics.mean(tf.shape(labels)[0]),
    }


def input_fn(params):
    """x is 1, 2, 3, ... up to 10, labels are twice x."""
    x = np.arange(1, 11, dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    """The last batch is smaller."""
    x = tf.data.Dataset.from_tensor_slices({"x": np.arange(1, 11, dtype=np.float32)})
    return x.batch(params["batch_size"])


def estimator(model_dir, model_fn=model_fn, num_shards=2, config=None, session_config=None, **arguments):
    tpu_config = tpu.TPUConfig(num_shards=num_shards, **(config or {}))
    run_config = tpu.RunConfig(tpu_config, model_dir=str(model_dir), session_config=session_config)
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
    return tpu.TPUEstimator(model_fn, config=run_config, **{**sizes, **arguments})
