"""The taxi example through the command line: a user's module whose label no raw column holds."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import pipelines
from pipelines.examples.taxi import generate

CONFIG = pathlib.Path(generate.__file__).with_name("taxi.toml")

pytestmark = pytest.mark.slow  # a whole pipeline, as integration/test_csv_to_saved_model.py


@pytest.fixture(scope="module")
def run(warm_command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("taxi_run")
    facts = generate.write_csv(folder / "taxi.csv", rows=3_000, seed=1)
    data, root = folder / "taxi.csv", folder / "root"
    settings = ("--set", f"data.path={data}", "--set", "trainer.train_steps=300")
    done = warm_command("run", "--config", CONFIG, *settings, "--root", root)
    assert done.returncode == 0, done.stderr[-5000:]
    return folder / "root", json.loads(done.stdout.splitlines()[-1]), facts


@pytest.fixture(scope="module")
def served(run):
    root, outcome, _ = run
    return tf.saved_model.load(str(root / "serving" / outcome["version"]))


def serialized(**values):
    kinds = {str: "bytes_list", int: "int64_list", float: "float_list"}
    feature = {}
    for name, value in values.items():
        content = value.encode() if isinstance(value, str) else value
        feature[name] = tf.train.Feature(**{kinds[type(value)]: {"value": [content]}})
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def test_the_model_is_pushed_and_about_as_good_as_it_can_be(run):
    _, outcome, facts = run
    assert outcome["status"] == "pushed"
    # 2,000 training examples and 1,000 to evaluate, whose AUC has a standard error of 0.013.
    assert facts["best_auc"] - 0.06 < outcome["metrics"]["auc"] < facts["best_auc"] + 0.04
    assert outcome["metrics"]["mean_label"] == pytest.approx(facts["positive_rate"], abs=0.05)


def test_every_signature_answers_raw_examples_without_tips(served):
    trips = tf.constant(
        [
            serialized(
                payment_type="Credit Card", company="Midway & Loop Dispatch", fare=12.5,
                trip_miles=4.0, trip_seconds=900, trip_start_hour=20, dropoff_community_area=76,
            ),
            serialized(payment_type="Cash", company="never seen", fare=8.0, trip_miles=1.0),
            serialized(),
        ]
    )  # fmt: skip
    signatures = served.signatures
    probabilities = signatures["predict"](examples=trips)["probabilities"].numpy()
    assert probabilities.shape == (3, 2)
    assert probabilities[0, 1] > 0.5 > probabilities[1, 1]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    for name in ("serving_default", "classification"):
        outputs = signatures[name](inputs=trips)
        np.testing.assert_allclose(outputs["scores"], probabilities, atol=1e-6)
        assert outputs["classes"].numpy().tolist() == [[b"0", b"1"]] * 3


def test_rows_have_the_same_predictions_in_python_and_by_the_signature_of_rows(run, served):
    """The tips of a row are no column of the model, and a missing value has a mark in a tensor."""
    root, _, _ = run
    rows = [
        {"payment_type": "Credit Card", "fare": 12, "trip_miles": 4, "trip_seconds": 900, "tips": 3},
        {"payment_type": "Cash", "company": None, "fare": 8.5, "trip_start_hour": 20.0},
    ]
    model = pipelines.load(root)
    signature = served.signatures["serving_rows"]
    missing = {tf.float32: float("nan"), tf.int64: tf.int64.min, tf.string: ""}
    tensors = {}
    for name, spec in signature.structured_input_signature[1].items():
        values = [row.get(name) for row in rows]
        filled = [missing[spec.dtype] if value is None else value for value in values]
        tensors[name] = tf.constant(np.array(filled, spec.dtype.as_numpy_dtype))
    probabilities = signature(**tensors)["probabilities"].numpy()
    found = model.predict(rows)
    np.testing.assert_array_equal(found["probability_1"], probabilities[:, 1])
    assert found["probability_1"][0] > found["probability_1"][1]
    assert "tips" not in tensors
