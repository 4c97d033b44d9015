"""Typical programs print nothing on stderr, apart from TensorFlow's own lines when it starts."""

import pathlib
import re
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import sys, tempfile, warnings
warnings.simplefilter("always")
warnings.filterwarnings("ignore", ".*___pyct_anno", DeprecationWarning)  # of AutoGraph, since Python 3.13
import keras, numpy as np, tensorflow as tf
import estimator_core as est

tf1, fc = tf.compat.v1, tf.feature_column
x = np.linspace(-1, 1, 300, dtype=np.float32).reshape(-1, 1)
words = np.array(["a", "b", "c"])[np.arange(300) % 3].reshape(-1, 1)
labels = (x > 0).astype(np.int64)
number = fc.numeric_column("x")
word = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
columns = [number, fc.embedding_column(word, 2)]
parse = est.export.build_parsing_serving_input_receiver_fn(fc.make_parse_example_spec(columns))
feed = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 1])})

def rows():
    return tf.data.Dataset.from_tensor_slices(({"x": x, "w": words}, labels))

def lists():
    spec = ({"x": tf.TensorSpec([None, 1])}, tf.TensorSpec([1], tf.int64))
    made = [({"x": [[1.0]] * (i % 3 + 1)}, [i % 2]) for i in range(64)]
    return tf.data.Dataset.from_generator(lambda: iter(made), output_signature=spec)

def run(make_model, train, evaluate, receiver_fn):
    model = make_model(est.RunConfig(tempfile.mkdtemp(), save_checkpoints_steps=3))
    model.train(train, steps=6)
    model.evaluate(evaluate)
    list(model.predict(evaluate))
    model.export_saved_model(tempfile.mkdtemp(), receiver_fn)
    return model

def model_fn(features, labels, mode):
    x = features["x"]
    logits = tf.reduce_sum(x.to_tensor() if isinstance(x, tf.RaggedTensor) else x, -1)
    logits = tf.reshape(logits, [tf.shape(logits)[0], -1])[:, :1] * tf1.get_variable("w", [1])
    if mode == "infer":
        return est.EstimatorSpec(mode, predictions=logits)
    loss = tf1.losses.sigmoid_cross_entropy(labels, logits)
    step = tf1.train.AdamOptimizer().minimize(loss, tf1.train.get_global_step())
    metrics = {"loss_mean": tf1.metrics.mean(loss)}
    return est.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops=metrics)

with tf.Graph().as_default(), tf1.Session() as session:
    session.run(tf.constant(1))  # TensorFlow starts
print("begins", file=sys.stderr, flush=True)

evaluate = lambda: rows().batch(64)
train = lambda: rows().shuffle(100).repeat().batch(64)
run(lambda config: est.LinearClassifier([number, word], config=config), train, evaluate, parse)
classifier = run(
    lambda config: est.DNNClassifier([4], columns, dropout=0.5, batch_norm=True, config=config),
    train, evaluate, parse,
)
exporter = est.FinalExporter("final", parse)
spec = est.EvalSpec(evaluate, steps=None, exporters=exporter, start_delay_secs=0, throttle_secs=0)
est.train_and_evaluate(classifier, est.TrainSpec(train, max_steps=9), spec)
for batches in (lambda: lists().padded_batch(32), lambda: lists().ragged_batch(32)):
    repeated = lambda: batches().repeat()
    run(lambda config: est.Estimator(model_fn, config=config), repeated, batches, feed)
model = keras.Sequential([keras.Input((1,), name="x"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["AUC"])
rows_of_x = lambda: tf.data.Dataset.from_tensor_slices(({"x": x}, labels)).repeat(3).batch(64)
run(lambda config: est.model_to_estimator(model, config=config), rows_of_x, rows_of_x, feed)
"""
# Information, and what TensorFlow says of graphics cards.
_EXPECTED = re.compile(r"^(I0000|\S+ \S+: I tensorflow/)|cuda", re.IGNORECASE)


@pytest.mark.more
def test_typical_programs_print_no_warnings():
    """Each kind of Estimator trains, evaluates, predicts and exports; one goes on from its checkpoint."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT)
    printed = done.stderr.partition("begins\n")[2].splitlines()
    assert "\n".join(line for line in printed if not _EXPECTED.search(line)) == ""
