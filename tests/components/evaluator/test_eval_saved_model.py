"""An EvalSavedModel of TensorFlow 2.15.1 and `tfma.export`, and its metrics by TFMA 0.46.0 on Beam 2.56.0.

The program that wrote both is tests/components/evaluator/eval_saved_model/make.py.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
import tensorflow as tf
from tfx.types import standard_artifacts

from tests.components.evaluator.conftest import FLOAT, eval_config

HERE = Path(__file__).parent / "eval_saved_model"
REFERENCE = json.loads((HERE / "metrics.json").read_text())


@pytest.fixture
def old_model(make_artifact):
    model = make_artifact(standard_artifacts.Model, "old_model")
    shutil.unpack_archive(HERE / "model.tar.xz", model.uri, filter="data")
    return model


# What it was evaluated with.
ALL_SLICES = """
  model_specs { signature_name: "eval" label_key: "label" example_weight_key: "weight" }
  slicing_specs {} slicing_specs { feature_keys: "city" }
  slicing_specs { feature_keys: ["city", "hour"] }
  slicing_specs { feature_values { key: "hour" value: "8" } }
  options { include_default_metrics { value: true } }
  metrics_specs {
    metrics { class_name: "ExampleCount" } metrics { class_name: "AUC" }
    metrics { class_name: "BinaryAccuracy" } metrics { class_name: "MeanPrediction" } }
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", ["over arrays", "by example"])
def test_each_metric_in_each_slice_is_that_of_then(path, make_examples, old_model, evaluate):
    config = eval_config(ALL_SLICES)
    if path == "by example":
        config.options.min_slice_size.value = 2
    verdict = evaluate(make_examples(REFERENCE["rows"]), old_model, config).verdict
    by_slice = {"Overall": verdict.metrics, **verdict.slices}
    assert by_slice.keys() == REFERENCE["metrics"].keys()
    assert len(by_slice) == 1 + 3 + 6 + 1
    for name, metrics in REFERENCE["metrics"].items():
        assert by_slice[name] == pytest.approx(metrics, rel=1e-5), name
    assert {"accuracy", "error/mean"} < verdict.metrics.keys()


@pytest.mark.more
def test_a_teams_last_blessed_model_is_its_first_baseline(make_examples, make_model, old_model, evaluate):
    new_model = make_model(
        {"x": FLOAT, "label": tf.io.FixedLenFeature([], tf.int64)},
        predict=lambda f: {"logistic": tf.sigmoid(-f["x"])[:, tf.newaxis]},  # the wrong way round
        label=lambda f: f["label"],
        metrics=lambda f, labels, predictions: {
            "accuracy": tf.compat.v1.metrics.accuracy(labels, predictions["logistic"][:, 0] > 0.5)
        },
    )
    config = eval_config(
        """model_specs { signature_name: "eval" label_key: "label" }
        metrics_specs { thresholds { key: "accuracy" value {
          value_threshold { lower_bound { value: 0.1 } }
          change_threshold { direction: HIGHER_IS_BETTER absolute { value: -1e-3 } } } } }"""
    )
    examples = make_examples(REFERENCE["rows"])
    worse = evaluate(examples, new_model, config, baseline_model=old_model)
    before = REFERENCE["metrics"]["Overall"]["accuracy"]
    assert worse.verdict.baseline_metrics["accuracy"] == pytest.approx(before)
    (failure,) = worse.verdict.failures
    assert failure.startswith("accuracy changed by -")
    assert f"from the baseline's {before:.6g} to" in failure
    assert os.listdir(worse.blessing.uri) == ["NOT_BLESSED"]
    better = evaluate(examples, old_model, config, baseline_model=new_model)
    assert os.listdir(better.blessing.uri) == ["BLESSED"]
