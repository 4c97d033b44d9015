"""Programs as people wrote them from 2017 on; a session call evaluates many of their batches."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.contract.programs_in_a_loop import (
    arrays,
    calls_python,
    columns,
    dense,
    digits,
    estimator_of,
    wide_and_deep,
    with_branches,
)

X = [tf.feature_column.numeric_column("x", [3])]


def forty_batches():
    return tf.data.Dataset.from_tensor_slices(arrays()).batch(4)


def one_shot():
    return tf1.data.make_one_shot_iterator(forty_batches()).get_next()


def with_a_smaller_last_batch():
    return tf.data.Dataset.from_tensor_slices(arrays()).batch(7)


def with_empty_batches():
    """A filter within batches leaves some of them without rows."""

    def keep(features, label):
        few = tf.reduce_sum(tf.cast(label, tf.int32)) < 2
        return tf.nest.map_structure(lambda each: each[:0] if few else each, (features, label))

    return forty_batches().map(keep)


def weighted():
    def add_weight(features, label):
        return {**features, "weight": tf.abs(features["x"][:, :1])}, label

    return forty_batches().map(add_weight)


def evaluated(metrics_of, between=tf.nn.relu, with_hooks=None, **options):
    """A model_fn of one layer, whose metrics are a function of (labels, logits, features)."""

    def model_fn(features, labels, mode):
        logits = between(dense(features["x"], 2, "out", **options))
        loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == "eval":
            metrics = metrics_of(labels, logits, features)
            hooks = with_hooks() if with_hooks else []
            return est.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics, evaluation_hooks=hooks)
        step = tf1.train.get_global_step()
        train_op = tf1.train.AdamOptimizer(0.05).minimize(loss, step)
        return est.EstimatorSpec(mode, {"y": logits}, loss, train_op)

    return estimator_of(model_fn)


def streaming(labels, logits, features):
    """The metrics of TensorFlow 1, with weights, and several that keep more than a sum and a count."""
    predicted = tf.argmax(logits, axis=1)
    probability = tf.nn.softmax(logits)[:, 1]
    weights = tf.abs(features["x"][:, 0])
    metrics = tf1.metrics
    return {
        "accuracy": metrics.accuracy(labels, predicted, weights),
        "auc": metrics.auc(labels, probability, weights),
        "auc_pr": metrics.auc(labels, probability, curve="PR", num_thresholds=50),
        "mean_per_class": metrics.mean_per_class_accuracy(labels, predicted, 2),
        "mean_iou": metrics.mean_iou(labels, predicted, 2),
        "mse": metrics.mean_squared_error(tf.cast(labels, tf.float32), probability, weights),
        "rmse": metrics.root_mean_squared_error(tf.cast(labels, tf.float32), probability),
        "at_2": metrics.precision_at_k(labels, logits, 2),
        "at_recall": metrics.precision_at_thresholds(labels, probability, [0.2, 0.7]),
        "tensor": metrics.mean_tensor(tf.reduce_mean(features["x"], axis=0)),
    }


def kept_by_hand(labels, logits, features):
    """Local variables, whose update is written out: a maximum, and the last loss seen."""
    highest = tf1.get_local_variable("highest", [], initializer=tf1.constant_initializer(-9.0))
    last = tf1.Variable(0.0, collections=[tf1.GraphKeys.LOCAL_VARIABLES], trainable=False)
    score = tf.reduce_max(logits)
    keep_last = last.assign(score)
    higher = highest.assign(tf.maximum(highest, score))
    return {"highest": (highest.read_value(), higher), "last": (last.read_value(), keep_last.op)}


def confusion(labels, logits, features):
    """A matrix that adds up, as people wrote it for lack of a metric."""
    total = tf1.get_local_variable("matrix", [2, 2], tf.int32, tf1.zeros_initializer())
    batch = tf.math.confusion_matrix(labels, tf.argmax(logits, axis=1), 2)
    return {"confusion": (tf.identity(total), tf1.assign_add(total, batch))}


def with_keras_metrics(labels, logits, features):
    import keras

    accuracy, auc = keras.metrics.SparseCategoricalAccuracy(), keras.metrics.AUC(num_thresholds=20)
    accuracy.update_state(labels, logits)
    auc.update_state(labels, tf.nn.softmax(logits)[:, 1])
    return {"accuracy": accuracy, "auc": auc}


def mean_only(labels, logits, features):
    return {"mean": tf1.metrics.mean(logits)}


def of_python(labels, logits, features):
    value = tf1.py_func(lambda scores: np.float32(scores.max()), [logits], tf.float32)
    return {"highest": tf1.metrics.mean(value)}


def with_old_variables(labels, logits, features):
    """A sum in a variable of TensorFlow 1 itself: no resource."""
    total = tf1.get_local_variable("total", [], initializer=tf1.zeros_initializer(), use_resource=False)
    return {"total": (tf.identity(total), tf1.assign_add(total, tf.reduce_sum(logits)))}


def drawing(labels, logits, features):
    """A metric over a random half of the examples, which a seed chooses."""
    keep = tf1.random_uniform([4], seed=5) < 0.5
    return {"half": tf1.metrics.mean(logits[:, 0], tf.cast(keep, tf.float32))}


def printing(logits):
    with tf.control_dependencies([tf.print(tf.reduce_mean(logits), output_stream="file:///dev/null")]):
        return tf.identity(logits)


def with_table(labels, logits, features):
    return {"word": tf1.metrics.mean(digits().lookup(features["word"]))}


def binary(config):
    return est.DNNClassifier([6], columns()[0], config=config)


def binary_with_weights(config):
    return est.DNNClassifier([6], X, weight_column="weight", config=config)


def regressor(config):
    return est.LinearRegressor(X, config=config)


def three_classes(config):
    return est.DNNClassifier([6], columns()[0], n_classes=3, config=config)


# Name -> (Estimator of a config, input_fn, the reason why no copy of the updates can be made, or None).
PROGRAMS = {
    "streaming": (evaluated(streaming), forty_batches, None),
    "kept_by_hand": (evaluated(kept_by_hand), forty_batches, None),
    "confusion": (evaluated(confusion), with_a_smaller_last_batch, None),
    "keras_metrics": (evaluated(with_keras_metrics), forty_batches, None),
    "branches": (evaluated(mean_only, with_branches), forty_batches, None),
    "printing": (evaluated(mean_only, printing), forty_batches, None),
    "table": (evaluated(with_table), forty_batches, None),
    "one_shot": (evaluated(mean_only), one_shot, None),
    "binary": (binary, with_a_smaller_last_batch, None),
    "binary_with_weights": (binary_with_weights, weighted, None),
    "wide_and_deep": (wide_and_deep, forty_batches, None),
    "regressor": (regressor, with_a_smaller_last_batch, None),
    "empty_batches": (regressor, with_empty_batches, None),
    "three_classes": (three_classes, forty_batches, None),
    "py_func": (evaluated(mean_only, calls_python), forty_batches, "PyFunc"),
    "py_func_in_a_metric": (evaluated(of_python), forty_batches, "PyFunc"),
    "old_variables": (evaluated(with_old_variables), forty_batches, "variable of TensorFlow 1"),
    "seeded": (evaluated(drawing), forty_batches, "random numbers"),
}
