"""Writes `7/`, the SavedModel of an old program, with the reference:

    reference/bin/pip install tensorflow==2.15.1
    reference/bin/python make.py

Of a price and a kind, `value` is twice the price plus the number of letters.
"""

import pathlib
import shutil
import tempfile

import tensorflow as tf

SPEC = {
    "price": tf.io.FixedLenFeature([], tf.float32),
    "kind": tf.io.FixedLenFeature([], tf.string, default_value=""),
}


def model_fn(features, labels, mode):
    factor = tf.compat.v1.get_variable("factor", initializer=2.0)
    value = factor * features["price"] + tf.cast(tf.strings.length(features["kind"]), tf.float32)
    names = tf.tile([["cheap", "dear"]], [tf.size(value), 1])
    export = tf.estimator.export
    outputs = {
        "serving_default": export.PredictOutput({"value": value, "name": tf.strings.upper(features["kind"])}),
        "number": export.RegressionOutput(value),
        "class": export.ClassificationOutput(tf.nn.softmax(tf.stack([-value, value], axis=1)), names),
    }
    step = tf.compat.v1.train.get_global_step()
    return tf.estimator.EstimatorSpec(
        mode,
        loss=tf.constant(0.0),
        train_op=tf.compat.v1.assign_add(step, 1),
        predictions={"value": value},
        export_outputs=outputs,
    )


def receive():
    examples = tf.compat.v1.placeholder(tf.string, [None])
    columns = tf.io.parse_example(examples, SPEC)
    return tf.estimator.export.ServingInputReceiver(columns, examples, {"columns": columns})


def train():
    return tf.data.Dataset.from_tensors(({"price": [1.0], "kind": ["a"]}, [1.0]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        estimator = tf.estimator.Estimator(model_fn, folder)
        estimator.train(train, steps=1)
        exported = estimator.export_saved_model(f"{folder}/exports", receive)
        shutil.copytree(exported.decode(), pathlib.Path(__file__).parent / "7", dirs_exist_ok=True)
