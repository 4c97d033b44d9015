"""What typical programs print on stderr: nothing but the lines that TensorFlow prints when it starts."""

import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import logging, tempfile, warnings
warnings.simplefilter("always")
import keras, numpy as np, tensorflow as tf
import estimator_core as est
tf1, fc = tf.compat.v1, tf.feature_column
print("begins", file=__import__("sys").stderr, flush=True)

x = np.linspace(-1, 1, 300, dtype=np.float32).reshape(-1, 1)
words = np.array(["a", "b", "c"])[np.arange(300) % 3].reshape(-1, 1)
labels = (x > 0).astype(np.int64)
number = fc.numeric_column("x")
word = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
columns = [number, fc.embedding_column(word, 2)]
receiver_fn = est.export.build_parsing_serving_input_receiver_fn(fc.make_parse_example_spec(columns))

def rows():
    return tf.data.Dataset.from_tensor_slices(({"x": x, "w": words}, labels))

def padded():
    spec = ({"x": tf.TensorSpec([None, 1])}, tf.TensorSpec([1], tf.int64))
    lists = lambda: (({"x": [[1.0]] * (i % 3 + 1)}, [i % 2]) for i in range(64))
    return tf.data.Dataset.from_generator(lists, output_signature=spec).padded_batch(32)

def ragged():
    lists = tf.ragged.constant([[[1.0]] * (i % 3 + 1) for i in range(64)], ragged_rank=1)
    return tf.data.Dataset.from_tensor_slices(({"x": lists}, np.arange(64)[:, None] % 2)).batch(32)

def run(model, train, evaluate, export):
    model.train(train, steps=6)
    model.evaluate(evaluate)
    list(model.predict(evaluate))
    export and model.export_saved_model(tempfile.mkdtemp(), export)

def canned():
    train = lambda: rows().shuffle(100).repeat(3).batch(64)
    evaluate = lambda: rows().batch(64)
    run(est.LinearClassifier([number, word]), train, evaluate, receiver_fn)
    model = est.DNNClassifier([4], columns, dropout=0.5, batch_norm=True)
    exporter = est.FinalExporter("final", receiver_fn)
    spec = est.EvalSpec(evaluate, steps=None, exporters=exporter, start_delay_secs=0, throttle_secs=0)
    est.train_and_evaluate(model, est.TrainSpec(lambda: train().repeat(), max_steps=20), spec)

def own_model_fn():
    def model_fn(features, labels, mode):
        x = features["x"]
        summed = x.to_tensor() if isinstance(x, tf.RaggedTensor) else x
        logits = tf.reduce_sum(summed, 1) * tf1.get_variable("w", [1, 1])
        if mode == "infer":
            return est.EstimatorSpec(mode, predictions=logits)
        loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
        step = tf1.train.AdamOptimizer().minimize(loss, tf1.train.get_global_step())
        metrics = {"auc": tf1.metrics.auc(labels, tf.sigmoid(logits))}
        return est.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=metrics)
    for batches in (padded, ragged):
        run(est.Estimator(model_fn), lambda: batches().repeat(), batches, None)

def keras_model():
    layers = [keras.Input((1,), name="x"), keras.layers.Dense(4, "relu"), keras.layers.BatchNormalization()]
    model = keras.Sequential([*layers, keras.layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["AUC"])
    batches = lambda: tf.data.Dataset.from_tensor_slices(({"x": x}, labels)).batch(64)
    export = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 1])})
    run(est.model_to_estimator(model), lambda: batches().repeat(), batches, export)

KIND()
"""


@pytest.mark.parametrize("kind", ["canned", "own_model_fn", "keras_model"])
def test_typical_programs_print_no_warnings(kind, tmp_path):
    """`WARNING:tensorflow:` and the like are logged where the user can do something about it."""
    program = PROGRAM.replace("KIND()", f"{kind}()")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=PROJECT,
    )
    printed = done.stderr.partition("begins\n")[2].splitlines()
    assert [line for line in printed if not _is_expected(line)] == []


def _is_expected(line):
    return any(re.search(pattern, line) for pattern in EXPECTED)


EXPECTED = ()
