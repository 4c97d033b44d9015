"""Placement of the variables and tables of a model in a cluster with parameter servers.

`placement.json` is that of tf.estimator 2.15; in its environment (README.md):

PYTHONPATH=. REFERENCE_VENV/bin/python -m tests.oracle.placement

A graph is built for one worker of a cluster and inspected before there is any session, so that no
other task has to run. The order in which variables are created decides which server gets them.
"""

import contextlib
import json
import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

PATH = pathlib.Path(__file__).parent / "placement.json"

TF_CONFIG = {
    "cluster": {
        "chief": ["localhost:1"],
        "worker": ["localhost:2", "localhost:3"],
        "ps": ["localhost:4", "localhost:5", "localhost:6"],
    },
    "task": {"type": "worker", "index": 1},
}
TABLES = ("HashTableV2", "MutableHashTableV2", "MutableDenseHashTableV2")


class BuiltError(Exception):
    """The graph is there: nothing more is to be done."""


class Inspect(tf1.train.SessionRunHook):
    """Notes devices before the session is created, and ends the training."""

    def begin(self):
        graph = tf1.get_default_graph()
        self.variables = {v.op.name: v.op.device for v in tf1.global_variables()}
        tables = [op for op in graph.get_operations() if op.type in TABLES]
        self.tables = sorted([op.type, op.device] for op in tables if op.type != "HashTableV2")
        self.fixed_tables = sorted({op.device for op in tables if op.type == "HashTableV2"})
        self.local_variables = sorted({v.op.device for v in tf1.local_variables()})
        self.iterators = sorted({op.device for op in graph.get_operations() if op.type == "IteratorGetNext"})
        raise BuiltError


def input_fn():
    features = {
        "x": np.ones([4, 300], np.float32),
        "word": np.array([["a"], ["b"], ["c"], ["d"]]),
        "id": np.array(["1", "2", "3", "4"]),
    }
    return tf.data.Dataset.from_tensors((features, np.ones([4, 1], np.float32)))


def custom_model_fn(features, labels, mode):
    """Variables of several kinds with slots, a partitioned one, and tables of two kinds."""
    words = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([1], tf.int64)), -1
    )
    seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    ref = tf1.get_variable("ref", [300, 1], use_resource=False)
    resource = tf1.get_variable("resource", [300, 1], use_resource=True)
    partitioned = tf1.get_variable("partitioned", [300, 1], partitioner=tf1.fixed_size_partitioner(4))
    local = tf1.get_variable("local", [], collections=[tf1.GraphKeys.LOCAL_VARIABLES], trainable=False)
    weights = ref + resource + tf.convert_to_tensor(partitioned)
    known = words.lookup(features["word"]) + seen.lookup(features["word"])
    shift = tf.reduce_sum(tf.cast(known, tf.float32)) + local
    loss = tf.reduce_mean(tf.square(features["x"] @ weights - labels)) + shift
    return mode, loss, tf1.train.AdamOptimizer().minimize(loss, tf1.train.get_global_step())


def custom(e, config):
    def model_fn(features, labels, mode):
        mode, loss, train_op = custom_model_fn(features, labels, mode)
        return e.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return e.Estimator(model_fn, config=config)


def columns():
    word = tf.feature_column.categorical_column_with_vocabulary_list("word", list("abcdefgh"))
    return [word], [tf.feature_column.numeric_column("x", [300]), tf.feature_column.embedding_column(word, 4)]


def dnn_linear_combined(e, config):
    linear, dnn = columns()
    return e.DNNLinearCombinedClassifier(
        linear_feature_columns=linear, dnn_feature_columns=dnn, dnn_hidden_units=[300, 300], config=config
    )


def small_slices(e, config):
    linear, dnn = columns()
    return e.DNNLinearCombinedClassifier(
        linear_feature_columns=linear,
        dnn_feature_columns=dnn,
        dnn_hidden_units=[300, 3],
        input_layer_partitioner=tf1.min_max_variable_partitioner(3, min_slice_size=32),
        config=config,
    )


def sdca(e, config):
    word, _ = columns()
    return e.LinearClassifier(
        [*word, tf.feature_column.numeric_column("x", [300])],
        optimizer=tf.estimator.experimental.LinearSDCA("id", num_table_shards=2)
        if hasattr(tf, "estimator")
        else e.experimental.LinearSDCA("id", num_table_shards=2),
        config=config,
    )


def own_device_fn(e, config):
    config = config.replace(device_fn=lambda op: "/job:ps/task:2" if "Var" in op.type else "")
    return custom(e, config)


# name: (whether it speaks to tf.compat.v1.estimator, function from the API to the Estimator)
PROGRAMS = {
    "custom": (False, custom),
    "own_device_fn": (False, own_device_fn),
    "dnn_linear_combined": (False, dnn_linear_combined),
    "dnn_linear_combined_v1": (True, dnn_linear_combined),
    "small_slices_v1": (True, small_slices),
    "linear_sdca": (False, sdca),
}


def placement(name, e, model_dir):
    """Returns the devices of a program's variables and tables; TF_CONFIG must be set."""
    _, make = PROGRAMS[name]
    inspect = Inspect()
    with contextlib.suppress(BuiltError):
        make(e, e.RunConfig(model_dir=model_dir)).train(input_fn, hooks=[inspect], max_steps=1)
    return {
        key: getattr(inspect, key)
        for key in ("variables", "tables", "fixed_tables", "local_variables", "iterators")
    }


def main():
    os.environ["TF_CONFIG"] = json.dumps(TF_CONFIG)
    found = {}
    for name, (is_v1, _) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as model_dir:
            found[name] = placement(name, tf1.estimator if is_v1 else tf.estimator, model_dir)
    with open(PATH, "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
