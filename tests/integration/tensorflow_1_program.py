"""A program as they began in TensorFlow 1: ref variables, no eager execution, canned Estimators.

    python tensorflow_1_program.py        here
    python tensorflow_1_program.py 2.15   in the reference environment of tests/oracle/README.md

Prints its results as JSON.
"""

import json
import os
import sys
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
if sys.argv[1:] != ["2.15"]:
    import estimator_core

    estimator_core.install()

X = np.random.RandomState(0).rand(64, 3).astype(np.float32)
Y = (X.sum(axis=1) > 1.5).astype(np.int64)


def train_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(8)


def eval_input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(8)


def model_fn(features, labels, mode, params):
    weight = tf.get_variable(
        "weight", [3, 1], initializer=tf.constant_initializer(0.1), use_resource=params["resource"]
    )
    table = tf.get_variable("table", [10, 2], initializer=tf.constant_initializer(0.3))
    rows = tf.nn.embedding_lookup(table, tf.cast(features["x"][:, 0] * 10, tf.int32))
    logits = tf.matmul(features["x"], weight) + tf.reduce_sum(rows, 1, keepdims=True)
    probability = tf.sigmoid(logits)[:, 0]
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"p": probability})
    loss = tf.losses.sigmoid_cross_entropy(tf.reshape(labels, [-1, 1]), logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"auc": tf.metrics.auc(labels, probability)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    average = tf.train.ExponentialMovingAverage(0.9)
    step = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_or_create_global_step())
    with tf.control_dependencies([step]):
        train_op = average.apply([weight])
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def plain(metrics):
    return {name: float(value) for name, value in sorted(metrics.items())}


def of_model_fn(resource):
    config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), save_checkpoints_steps=10)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"resource": resource})
    estimator.train(train_input_fn, steps=20)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(train_input_fn, max_steps=40),
        tf.estimator.EvalSpec(eval_input_fn, steps=None, throttle_secs=0),
    )
    predictions = [float(one["p"]) for one in estimator.predict(eval_input_fn)]
    receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 3])}
    )
    exported = estimator.export_saved_model(tempfile.mkdtemp(), receiver_fn)
    return {
        "metrics": plain(estimator.evaluate(eval_input_fn)),
        "predictions": predictions[:3],
        "variables": sorted(estimator.get_variable_names()),
        "exported": sorted(os.listdir(exported.decode())),
    }


def canned(make):
    estimator = make(tempfile.mkdtemp())
    estimator.train(train_input_fn, steps=10)
    return {
        "metrics": plain(estimator.evaluate(eval_input_fn)),
        "variables": sorted(estimator.get_variable_names()),
    }


NUMBERS = [tf.feature_column.numeric_column("x", shape=(3,))]
SEEN = {
    "ref variables": of_model_fn(None),
    "a resource variable": of_model_fn(True),
    "BaselineClassifier": canned(lambda path: tf.estimator.BaselineClassifier(path)),
    "BaselineRegressor": canned(lambda path: tf.estimator.BaselineRegressor(path)),
    "LinearClassifier": canned(lambda path: tf.estimator.LinearClassifier(NUMBERS, path)),
    "LinearRegressor": canned(lambda path: tf.estimator.LinearRegressor(NUMBERS, path)),
}
print(json.dumps(SEEN, indent=1, sort_keys=True))
