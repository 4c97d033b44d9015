"""The details of a report, through the executor."""

import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.report_details.details import load_details
from tests.components.evaluator.conftest import FLOAT, save_serving_model, served

CONFIG = """
model_specs {} slicing_specs {} slicing_specs { feature_keys: "city" }
metrics_specs { metrics { class_name: "AUC" } }
"""


def binary_rows(count):
    draw = np.random.default_rng(11)
    labels = draw.integers(0, 2, count)
    return [
        {
            "label": int(label),
            "score": float(np.float32(np.clip(0.3 * label + 0.6 * draw.random(), 0, 1))),
            "noise": float(draw.random()),
            "city": ["Oslo", "Rome", "Zürich"][index % 3],
        }
        for index, label in enumerate(labels)
    ]


def test_plots_intervals_by_slice_and_importance(make_examples, make_model, evaluate):
    rows = binary_rows(300)
    model = make_model(
        {"label": tf.io.FixedLenFeature([], tf.int64), "score": FLOAT, "noise": FLOAT},
        predict=lambda f: {"logistic": f["score"][:, tf.newaxis] + 0 * f["noise"][:, tf.newaxis]},
        label=lambda f: f["label"],
    )
    config = text_format.Parse(CONFIG, config_pb2.EvalConfig())
    found = load_details(evaluate(make_examples(rows), model, config).evaluation.uri)
    labels = np.array([row["label"] for row in rows])
    scores = np.array([row["score"] for row in rows])
    assert (found["plots"]["problem_type"], found["plots"]["num_examples"]) == ("binary", 300)
    roc = np.array(found["plots"]["model"]["roc"])
    expected = sklearn.metrics.roc_auc_score(labels, scores)
    assert np.trapezoid(roc[:, 1], roc[:, 0]) == pytest.approx(expected, abs=0.003)
    assert "baseline" not in found["plots"]
    slices = found["slices"]["slices"]
    names = ("city:Oslo", "city:Rome", "city:Zürich")
    sizes = {name: one["num_examples"] for name, one in slices.items()}
    assert sizes == {"Overall": 300} | dict.fromkeys(names, 100)
    for number, name in enumerate(names):
        low, high = slices[name]["intervals"]["auc"]
        area = sklearn.metrics.roc_auc_score(labels[number::3], scores[number::3])
        assert low < area < high
    growth = {one["feature"]: one["growth"] for one in found["importance"]["features"]}
    assert growth["score"] > 0.05
    assert [growth[name] for name in ("noise", "city", "label")] == [0, 0, 0]
    right = np.where(labels == 1, scores, 1 - scores)
    worst = found["importance"]["worst"]
    assert [error["probability"] for error in worst] == pytest.approx(np.sort(right)[:5])
    assert [error["contributions"][0]["column"] for error in worst] == ["score"] * 5


def test_an_evaluation_of_an_older_version_has_none(tmp_path):
    assert load_details(str(tmp_path)) == {}


@pytest.mark.more
def test_a_model_that_is_no_estimator_has_all_but_importances(make_examples, make_artifact, evaluate):
    model = save_serving_model(make_artifact, serving_default=served("score"))
    config = text_format.Parse(CONFIG, config_pb2.EvalConfig())
    config.model_specs[0].label_key = "label"
    rows = binary_rows(90)
    checks = DefaultChecks("binary")
    found = load_details(evaluate(make_examples(rows), model, config, checks=checks).evaluation.uri)
    assert set(found) == {"plots", "slices"}
    assert found["plots"]["model"]["confusion"]["true_negatives"] == sum(
        row["label"] == 0 and row["score"] < 0.5 for row in rows
    )
    sizes = {name: one["num_examples"] for name, one in found["slices"]["slices"].items()}
    assert sizes == {"Overall": 90, "city:Oslo": 30, "city:Rome": 30, "city:Zürich": 30}
