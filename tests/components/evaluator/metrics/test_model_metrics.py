import pickle

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_model_analysis.metrics.metric_types import MetricKey

import estimator_core as estimator
from components.evaluator.metrics.eval_model import EvalGraph, load_graph
from components.evaluator.metrics.model_metrics import ModelMetricsCombiner, add_sums
from tests.components.conftest import example

tf1 = tf.compat.v1
PARSING = {
    "x": tf.io.FixedLenFeature([], tf.float32),
    "weight": tf.io.FixedLenFeature([], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}
RANDOM = np.random.default_rng(3)
ROWS = [
    {"x": float(x), "weight": 1.0 + i % 3, "label": int(x + RANDOM.normal() > 0)}
    for i, x in enumerate(RANDOM.normal(size=60))
]
SERIALIZED = np.array([example(row) for row in ROWS], object)


def input_fn():
    features = {name: tf.constant([row[name] for row in ROWS]) for name in PARSING}
    return tf.data.Dataset.from_tensors((features, features.pop("label")))


def eval_input_receiver_fn():
    serialized = tf1.placeholder(tf.string, [None])
    features = tf.io.parse_example(serialized, PARSING)
    return estimator.export.EvalInputReceiver(features, serialized, features["label"])


@pytest.fixture
def classifier(tmp_path):
    model = estimator.LinearClassifier(
        [tf.feature_column.numeric_column("x")], str(tmp_path / "run"), weight_column="weight"
    )
    model = estimator.add_metrics(
        model, lambda features: {"x/mean": tf1.metrics.mean(features["x"]), "two": constant(2.0)}
    )
    return model.train(input_fn, steps=5)


def constant(value):
    return tf.constant(value), tf.constant(value)


@pytest.mark.more
def test_the_metrics_of_several_batches_are_those_of_the_estimator(classifier, tmp_path):
    exported = classifier.experimental_export_all_saved_models(
        str(tmp_path / "export"), {estimator.ModeKeys.EVAL: eval_input_receiver_fn}
    ).decode()
    graph = load_graph(exported)
    assert load_graph(exported) is graph
    halves = graph.metric_sums(SERIALIZED[:20]), graph.metric_sums(SERIALIZED[20:])
    values = graph.metric_values(add_sums(*halves))
    expected = classifier.evaluate(input_fn)
    assert set(graph.metric_names) == {"auc", "accuracy", "x/mean", "two", *values}
    assert values == pytest.approx({name: expected[name] for name in values}, rel=1e-5)
    assert graph.metric_values(halves[0])["x/mean"] == pytest.approx(
        np.mean([row["x"] for row in ROWS[:20]]), rel=1e-5
    )


def test_examples_that_wait_are_part_of_the_sums(monkeypatch):
    class Lengths(EvalGraph):
        def __init__(self):
            self.batches = []

        def metric_sums(self, serialized):
            self.batches.append(serialized.tolist())
            return [np.array(len(serialized)), np.array(sum(map(len, serialized)))]

        def metric_values(self, sums):
            return {"bytes": sums[1]}

    module = "components.evaluator.metrics.model_metrics"
    graph = Lengths()
    monkeypatch.setattr(f"{module}.load_graph", lambda path: graph)
    monkeypatch.setattr(f"{module}._BATCH_SIZE", 2)
    key, absent = MetricKey("size"), MetricKey("other")
    combiner = ModelMetricsCombiner("path", {key: "bytes", absent: "absent"})
    accumulators = [combiner.create_accumulator() for _ in range(3)]
    for index, words in enumerate((["a", "bb", "ccc"], ["dddd"], [])):
        for word in words:
            accumulators[index] = combiner.add_input(accumulators[index], {"input": word})
    merged = combiner.merge_accumulators(accumulators)
    assert combiner.extract_output(merged) == {key: 10}
    assert graph.batches == [["a", "bb"], ["ccc"], ["dddd"]]
    # Beam sends it to other processes, each of which loads the model.
    assert pickle.loads(pickle.dumps(combiner)).extract_output(merged) == {key: 10}
    assert combiner.extract_output(combiner.create_accumulator()) == {}
