import json
import os
from unittest import mock

import numpy as np
import pytest
import sklearn.metrics
import tensorflow as tf
import tensorflow_model_analysis as tfma
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from scipy import stats
from tfx.components.evaluator import executor as stock_executor
from tfx.types import standard_artifacts
from tfx.utils import io_utils

from components.beam import in_memory_runner
from components.errors import SettingError
from components.evaluator import executor
from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.metrics import batched_evaluation
from components.evaluator.report_details import details
from tests.components.evaluator.conftest import FLOAT, STRING, eval_config, save_serving_model, served


def binary_rows(count=200):
    """Rows of a trip whose tip, above a fifth of the fare, is the label; every 10th has no hour."""
    random = np.random.default_rng(7)
    rows = []
    for i in range(count):
        fare, score = float(random.uniform(5, 50)), float(random.uniform(0.01, 0.99))
        tip = fare * (0.3 if random.uniform() < score else 0.1)
        hour = None if i % 10 == 0 else i % 3
        rows.append({"fare": fare, "tip": tip, "score": score, "hour": hour, "weight": 1.0 + i % 4})
    return rows


def tipped(rows):
    return np.array([row["tip"] > 0.2 * row["fare"] for row in rows])


def scores(rows):
    return np.array([row["score"] for row in rows])


@pytest.fixture
def make_binary_model(make_model):
    return lambda name: make_model(
        {"fare": FLOAT, "tip": FLOAT, "score": FLOAT},
        predict=lambda f: {
            "logistic": f["score"][:, tf.newaxis],
            "probabilities": tf.stack([1 - f["score"], f["score"]], axis=1),
            "class_ids": tf.cast(f["score"] > 0.5, tf.int64)[:, tf.newaxis],
        },
        label=lambda f: tf.cast(f["tip"] > 0.2 * f["fare"], tf.int64),
        name=name,
    )


@pytest.fixture
def binary_model(make_binary_model):
    return make_binary_model("model")


AUC = 'metrics_specs { metrics { class_name: "AUC" } }'
BINARY = """
  model_specs {} slicing_specs {} slicing_specs { feature_keys: "hour" }
  metrics_specs {
    metrics { class_name: "ExampleCount" } metrics { class_name: "BinaryAccuracy" }
    metrics { class_name: "AUC" per_slice_thresholds {
      slicing_specs {} threshold { value_threshold { lower_bound { value: %s } } } } }
  }
"""


def test_a_blessed_model_has_metrics_per_slice_and_stock_outputs(make_examples, binary_model, evaluate):
    binary_model.id = 5
    rows = binary_rows()
    result = evaluate(make_examples(rows), binary_model, eval_config(BINARY % 0.6))
    metrics = result.verdict.metrics
    assert metrics["example_count"] == 200
    # TFMA interpolates AUC over 10,000 thresholds.
    auc = sklearn.metrics.roc_auc_score(tipped(rows), scores(rows))
    assert metrics["auc"] == pytest.approx(auc, abs=1e-3)
    assert metrics["binary_accuracy"] == pytest.approx(np.mean((scores(rows) > 0.5) == tipped(rows)))
    # 20 rows have no hour, and belong to no slice of it.
    assert sorted(result.verdict.slices) == ["hour:0", "hour:1", "hour:2"]
    for hour in range(3):
        part = [row for row in rows if row["hour"] == hour]
        sliced = result.verdict.slices[f"hour:{hour}"]
        assert sliced["example_count"] == len(part)
        assert sliced["binary_accuracy"] == pytest.approx(np.mean((scores(part) > 0.5) == tipped(part)))
    assert result.verdict.blessed
    assert result.verdict.failures == []
    blessing = result.blessing
    assert os.listdir(blessing.uri) == ["BLESSED"]
    assert blessing.get_int_custom_property("blessed") == 1
    assert blessing.get_string_custom_property("current_model") == binary_model.uri
    assert blessing.get_int_custom_property("current_model_id") == 5
    # Files that TFMA's own viewers read.
    loaded = tfma.load_eval_result(result.evaluation.uri)
    assert len(loaded.slicing_metrics) == 4
    assert tfma.load_validation_result(result.evaluation.uri).validation_ok


def test_an_unreached_threshold_is_told_in_words(make_examples, binary_model, evaluate):
    result = evaluate(make_examples(binary_rows()), binary_model, eval_config(BINARY % 0.99))
    auc = result.verdict.metrics["auc"]
    sentence = f"auc {auc:.6g} is below the lower bound 0.99 (slice: Overall)"
    assert result.verdict.failures == [sentence]
    assert os.listdir(result.blessing.uri) == ["NOT_BLESSED"]
    assert result.blessing.get_int_custom_property("blessed") == 0
    assert result.blessing.get_string_custom_property("blessing_message") == sentence
    assert result.verdict.blessed is False


@pytest.mark.more
def test_a_model_that_lives_on_one_column_is_held_until_it_is_accepted(make_examples, make_model, evaluate):
    draw = np.random.default_rng(5)
    names = ("refunds", "age", "spend", "visits")
    rows = [
        {"churn": i % 2, "refunds": float(i % 2), **dict.fromkeys(names[1:], float(draw.normal()))}
        for i in range(300)
    ]
    model = make_model(
        {"churn": tf.io.FixedLenFeature([], tf.int64), **dict.fromkeys(names, FLOAT)},
        predict=lambda f: {"logistic": tf.sigmoid(6 * f["refunds"] - 3 + 0.1 * f["age"])[:, tf.newaxis]},
        label=lambda f: f["churn"],
    )
    examples, config = make_examples(rows), eval_config("model_specs {} slicing_specs {}")
    held = evaluate(examples, model, config, checks=DefaultChecks("binary")).verdict
    assert (held.blessed, held.held, held.failures) == (False, True, [])
    (doubt,) = held.doubts
    assert doubt.startswith("column 'refunds' may leak the label: ")
    checks = DefaultChecks("binary", accepted=("refunds",))
    assert evaluate(examples, model, config, checks=checks).verdict.blessed


CHANGE = """
  model_specs {}
  metrics_specs { metrics { class_name: "BinaryAccuracy" threshold { change_threshold {
    direction: HIGHER_IS_BETTER absolute { value: -0.01 } } } } }
"""


@pytest.mark.more
def test_a_worse_model_than_the_baseline_is_not_blessed(make_examples, make_model, binary_model, evaluate):
    rows = [{"fare": 10.0, "tip": 3.0, "score": 0.9}] * 3 + [{"fare": 10.0, "tip": 1.0, "score": 0.9}]
    # The model says 1 to all: right in 3 of 4. The baseline says 0 to all: right in 1 of 4.
    baseline = make_model(
        {"fare": FLOAT, "tip": FLOAT},
        predict=lambda f: {"logistic": 0.0 * f["fare"]},
        label=lambda f: tf.cast(f["tip"] > 0.2 * f["fare"], tf.int64),
        name="baseline",
    )
    examples, config = make_examples(rows), eval_config(CHANGE)
    better = evaluate(examples, binary_model, config, baseline_model=baseline)
    assert better.verdict.blessed
    assert better.verdict.metrics == {"binary_accuracy": 0.75, "binary_accuracy_diff": 0.5}
    assert better.verdict.baseline_metrics == {"binary_accuracy": 0.25}
    assert better.blessing.get_string_custom_property("baseline_model") == baseline.uri
    worse = evaluate(examples, baseline, config, baseline_model=binary_model)
    assert worse.verdict.failures == [
        "binary_accuracy changed by -0.5 from the baseline's 0.75 to 0.25, where at least -0.01 is "
        "required (slice: Overall)"
    ]
    # The first model of all has no baseline, and nothing to be worse than.
    assert evaluate(examples, baseline, config).verdict.blessed


@pytest.mark.more
def test_a_baseline_that_takes_a_column_of_another_type_is_not_compared_with(
    make_examples, make_model, binary_model, evaluate
):
    examples, config = make_examples(binary_rows(20)), eval_config(CHANGE)
    whole = make_model(
        {"fare": tf.io.FixedLenFeature([], tf.int64), "tip": FLOAT},
        predict=lambda f: {"logistic": 0.0 * f["tip"]},
        label=lambda f: tf.cast(f["tip"] > 2.0, tf.int64),
        name="whole",
    )
    found = evaluate(examples, binary_model, config, baseline_model=whole).verdict
    assert found.not_checked == (
        "the model against the baseline, which has other column types: 'fare' was int64, and is float now",
    )
    assert (found.blessed, found.baseline_metrics) == (True, {})
    # The model itself must take them.
    with pytest.raises(RuntimeError, match=r"(?s)cannot take the examples.*expected type: int64"):
        evaluate(examples, whole, config, baseline_model=binary_model)


def test_a_baseline_without_an_evaluation_model_and_an_empty_slice_are_named(
    make_examples, make_artifact, binary_model, evaluate
):
    baseline = make_artifact(standard_artifacts.Model, "keras")
    config = eval_config(CHANGE + "slicing_specs {}")
    config.slicing_specs.add(feature_keys=["hour_xf", "hour"])
    verdict = evaluate(make_examples(binary_rows(20)), binary_model, config, baseline_model=baseline).verdict
    assert sorted(verdict.not_checked) == [
        "the model against the baseline, which has no evaluation model (Format-TFMA)",
        "the slices by hour, hour_xf: they have no examples. Slices are by raw columns",
    ]
    assert (verdict.blessed, verdict.baseline_metrics) == (True, {})


def test_tfx_takes_it_for_its_own_executor_in_a_container():
    assert issubclass(executor.Executor, stock_executor.Executor)
    assert stock_executor.Executor not in executor.Executor.__mro__


def test_string_labels_of_a_multi_class_model(make_examples, make_model, evaluate):
    classes = ["setosa", "versicolor", "virginica"]
    rows = [
        {"species": "virginica", "a": 0.1, "b": 0.2, "c": 0.7},  # right
        {"species": "setosa", "a": 0.5, "b": 0.3, "c": 0.2},  # right
        {"species": "versicolor", "a": 0.6, "b": 0.3, "c": 0.1},  # wrong
        {"species": "setosa", "a": 0.8, "b": 0.1, "c": 0.1},  # right
    ]
    model = make_model(
        {"species": STRING, "a": FLOAT, "b": FLOAT, "c": FLOAT},
        predict=lambda f: {
            "probabilities": tf.stack([f["a"], f["b"], f["c"]], axis=1),
            "all_classes": tf.tile([classes], [tf.shape(f["a"])[0], 1]),
        },
        label=lambda f: f["species"],
    )
    config = eval_config(
        """metrics_specs {
          metrics { class_name: "SparseCategoricalAccuracy"
                    threshold { value_threshold { lower_bound { value: 0.7 } } } }
          metrics { class_name: "SparseCategoricalCrossentropy" } }"""
    )
    verdict = evaluate(make_examples(rows), model, config).verdict
    assert verdict.blessed
    assert verdict.metrics == {
        "sparse_categorical_accuracy": 0.75,
        "sparse_categorical_crossentropy": pytest.approx(-np.log([0.7, 0.5, 0.3, 0.8]).mean(), rel=1e-5),
    }


OF_A_CLASS = """
  model_specs { example_weight_key: "weight" }
  slicing_specs {}
  slicing_specs { feature_values { key: "city" value: "Oslo" } feature_values { key: "day" value: "1" } }
  slicing_specs { feature_values { key: "city" value: "Bern" } }
  metrics_specs { metrics {
    class_name: "SklearnMetric" module: "components.evaluator.metrics.sklearn_metrics"
    config: '{"name": "recall@late"}'
    per_slice_thresholds {
      slicing_specs { feature_values { key: "city" value: "Oslo" } feature_values { key: "day" value: "1" } }
      threshold { value_threshold { lower_bound { value: 0.8 } }
                  change_threshold { direction: HIGHER_IS_BETTER absolute { value: -0.1 } } } }
    per_slice_thresholds {
      slicing_specs { feature_values { key: "city" value: "Bern" } }
      threshold { value_threshold { lower_bound { value: 0.5 } } } } } }
"""


@pytest.mark.more
@pytest.mark.parametrize("by_example", [False, True])
def test_thresholds_of_one_class_and_a_slice(make_examples, make_model, evaluate, by_example, monkeypatch):
    def model(name, *classes):
        return make_model(
            {"status": STRING, "p": FLOAT, "old": FLOAT},
            predict=lambda f: {
                "probabilities": tf.stack([f[name] if c == "late" else 1 - f[name] for c in classes], axis=1),
                "all_classes": tf.tile([classes], [tf.shape(f[name])[0], 1]),
            },
            label=lambda f: f["status"],
            name=name,
        )

    rows = [  # (city, day, status, probability of "late": of the model, of the baseline, weight)
        ("Oslo", 1, "late", 0.9, 0.9, 3.0),
        ("Oslo", 1, "late", 0.2, 0.9, 2.0),
        ("Oslo", 1, "on time", 0.8, 0.1, 1.0),
        ("Oslo", 2, "late", 0.9, 0.1, 1.0),
        ("Rome", 1, "late", 0.1, 0.1, 4.0),
    ]
    names = ("city", "day", "status", "p", "old", "weight")
    examples = make_examples([dict(zip(names, row, strict=True)) for row in rows])
    if by_example:
        monkeypatch.setattr(batched_evaluation.Computations, "from_config", classmethod(lambda *_: None))
    verdict = evaluate(
        examples,
        model("p", "on time", "late"),
        eval_config(OF_A_CLASS),
        baseline_model=model("old", "late", "on time"),
    ).verdict
    slice_name = "city_X_day:Oslo_X_1"
    assert verdict.metrics["recall@late"] == pytest.approx(4 / 10)
    assert verdict.slices[slice_name]["recall@late"] == pytest.approx(3 / 5)
    assert verdict.baseline_slices[slice_name]["recall@late"] == 1
    assert sorted(verdict.failures) == [
        "A threshold is for city = 'Bern', and no example of the evaluation has this.",
        "recall of 'late' where city = 'Oslo' and day = 1 changed by -0.4 from the baseline's 1 to 0.6, "
        "where at least -0.1 is required",
        "recall of 'late' where city = 'Oslo' and day = 1: 0.6 is below the lower bound 0.8",
    ]


@pytest.mark.parametrize(
    "config", [pytest.param(BINARY % 0.5, id="auc"), pytest.param(OF_A_CLASS, id="a metric of one class")]
)
def test_no_examples_is_a_failure(make_examples, binary_model, evaluate, config):
    verdict = evaluate(make_examples([]), binary_model, eval_config(config)).verdict
    assert not verdict.blessed
    assert verdict.failures == ["The model was evaluated on no examples."]


def test_regression_metrics_are_those_computed_by_hand(make_examples, make_model, evaluate):
    rows = [{"y": 1.0, "p": 2.0}, {"y": 3.0, "p": 0.0}, {"y": -1.0, "p": -1.5}]
    model = make_model(
        {"y": FLOAT, "p": FLOAT},
        predict=lambda f: {"predictions": f["p"][:, tf.newaxis]},
        label=lambda f: f["y"],
    )
    config = eval_config(
        """metrics_specs {
          metrics { class_name: "MeanSquaredError" } metrics { class_name: "MeanAbsoluteError" }
          metrics { class_name: "RootMeanSquaredError"
                    threshold { value_threshold { upper_bound { value: 1.5 } } } }
          metrics { class_name: "SquaredPearsonCorrelation" }
          metrics { class_name: "MeanLabel" } metrics { class_name: "MeanPrediction" } }"""
    )
    verdict = evaluate(make_examples(rows), model, config).verdict
    # Errors -1, 3, 0.5: squares 1 + 9 + 0.25 = 10.25, absolute values 4.5.
    assert verdict.metrics == {
        "mean_squared_error": pytest.approx(10.25 / 3),
        "mean_absolute_error": pytest.approx(1.5),
        "root_mean_squared_error": pytest.approx((10.25 / 3) ** 0.5, rel=1e-6),
        "squared_pearson_correlation": pytest.approx(np.corrcoef([1, 3, -1], [2, 0, -1.5])[0, 1] ** 2),
        "mean_label": pytest.approx(1.0),
        "mean_prediction": pytest.approx(0.5 / 3),
    }
    assert verdict.failures == [
        "root_mean_squared_error 1.84842 is above the upper bound 1.5 (slice: Overall)"
    ]


@pytest.mark.more
def test_a_model_that_is_no_estimator_is_evaluated_on_its_signature(make_examples, make_artifact, evaluate):
    is_late = served("delay", "is_late", lambda delay: tf.cast(delay > 10.0, tf.int64))
    model = save_serving_model(make_artifact, serving_default=served("score"), derive=is_late)
    values = ((1, 11.0, 0.9), (0, 2.0, 0.2), (1, 30.0, 0.3))
    examples = make_examples([dict(zip(("label", "delay", "score"), row, strict=True)) for row in values])
    # The label is a column, or one that a preprocessing function of the model derives.
    for label in ('label_key: "label"', 'label_key: "is_late" preprocessing_function_names: "derive"'):
        config = eval_config(
            f"model_specs {{ {label} }}"
            """metrics_specs { metrics { class_name: "BinaryAccuracy"
              threshold { value_threshold { lower_bound { value: 0.5 } } } } }"""
        )
        verdict = evaluate(examples, model, config).verdict
        assert verdict.blessed
        assert verdict.metrics == {"binary_accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("label_key", "has_schema", "message"),
    [
        ("labl", False, r"no raw feature 'labl'.*one of: label, score\."),
        ("labl", True, r"no raw feature 'labl'.*one of: label, score\."),
        ("", False, "no label is named.*export_eval_savedmodel"),
    ],
)
def test_a_label_that_is_no_raw_feature_is_named(
    make_examples, make_artifact, make_schema, evaluate, label_key, has_schema, message
):
    inputs = {"schema": make_schema("score", "label")} if has_schema else {}
    model, examples = make_artifact(standard_artifacts.Model), make_examples([{"label": 1, "score": 0.5}])
    config = eval_config(f'model_specs {{ label_key: "{label_key}" }} {AUC}')
    with pytest.raises(SettingError, match=message):
        evaluate(examples, model, config, **inputs)


ALL_METRICS = """
  model_specs { example_weight_key: "weight" }
  slicing_specs {} slicing_specs { feature_keys: "hour" }
  slicing_specs { feature_values { key: "hour" value: "2" } }
  metrics_specs {
    metrics { class_name: "ExampleCount" } metrics { class_name: "WeightedExampleCount" }
    metrics { class_name: "AUC" } metrics { class_name: "AUCPrecisionRecall" }
    metrics { class_name: "BinaryAccuracy" } metrics { class_name: "BinaryCrossentropy" }
    metrics { class_name: "Precision" } metrics { class_name: "Recall" }
    metrics { class_name: "F1Score" } metrics { class_name: "Calibration" }
    metrics { class_name: "MeanLabel" } metrics { class_name: "MeanPrediction" }
    metrics { class_name: "RootMeanSquaredError" }
    metrics { class_name: "CalibrationPlot" } metrics { class_name: "ConfusionMatrixPlot" }
  }
"""


@pytest.mark.more
def test_metrics_over_arrays_are_those_of_tfma_by_example(make_examples, binary_model, evaluate, monkeypatch):
    examples, config = make_examples(binary_rows()), eval_config(ALL_METRICS)
    assert batched_evaluation.Computations.from_config(config) is not None
    over_arrays = evaluate(examples, binary_model, config)
    monkeypatch.setattr(batched_evaluation.Computations, "from_config", classmethod(lambda *_: None))
    by_example = evaluate(examples, binary_model, config)
    assert len(over_arrays.verdict.metrics) == 13
    assert over_arrays.verdict.metrics == pytest.approx(by_example.verdict.metrics, rel=1e-5)
    assert list(over_arrays.verdict.slices) == list(by_example.verdict.slices)
    for name, metrics in by_example.verdict.slices.items():
        assert over_arrays.verdict.slices[name] == pytest.approx(metrics, rel=1e-5)
    plots = [tfma.load_eval_result(e.evaluation.uri).plots for e in (over_arrays, by_example)]
    assert len(plots[0]) == len(plots[1]) == 4
    by_slice = [{key: json.dumps(value, sort_keys=True) for key, value in p} for p in plots]
    assert {k: len(v) for k, v in by_slice[0].items()} == {k: len(v) for k, v in by_slice[1].items()}


@pytest.mark.more
@pytest.mark.parametrize("metric", ["AUC", "BinaryCrossEntropy"])
def test_elements_are_not_copied_and_beams_own_runner_finds_the_same(
    metric, make_examples, binary_model, evaluate, monkeypatch
):
    run, by_beam = FnApiRunner.run_via_runner_api, []
    monkeypatch.setattr(FnApiRunner, "run_via_runner_api", lambda *a: (by_beam.append(a), run(*a))[1])
    examples = make_examples(binary_rows())
    config = eval_config(BINARY.replace("BinaryAccuracy", metric) % 0.6)
    ours = evaluate(examples, binary_model, config)
    assert not by_beam
    monkeypatch.setattr(in_memory_runner, "install", lambda pipeline: False)
    beams = evaluate(examples, binary_model, config)
    assert len(by_beam) == 1
    assert ours.verdict == beams.verdict
    assert len(ours.verdict.slices) == 3


def test_tfma_computes_other_metrics_and_a_model_needs_a_threshold(make_examples, binary_model, evaluate):
    rows = binary_rows(50)
    config = eval_config('metrics_specs { metrics { class_name: "BinaryCrossEntropy" } }')
    assert batched_evaluation.Computations.from_config(config) is None
    verdict = evaluate(make_examples(rows), binary_model, config).verdict
    (loss,) = verdict.metrics.values()
    labels, positive = np.array(tipped(rows)), np.array(scores(rows))
    expected = -np.mean(np.log(np.where(labels, positive, 1 - positive)))
    assert loss == pytest.approx(expected, rel=1e-4)
    assert not verdict.blessed
    assert "No threshold is configured" in verdict.failures[0]


@pytest.mark.more
def test_metrics_with_tfmas_confidence_intervals_have_their_values(make_examples, binary_model, evaluate):
    rows = binary_rows(50)
    config = eval_config(
        """metrics_specs { metrics { class_name: "BinaryAccuracy" } }
        options { compute_confidence_intervals { value: true } confidence_intervals { method: JACKKNIFE } }"""
    )
    verdict = evaluate(make_examples(rows), binary_model, config).verdict
    expected = np.mean((scores(rows) > 0.5) == tipped(rows))
    assert verdict.metrics == {"binary_accuracy": pytest.approx(expected)}


def test_several_model_specs_are_evaluated_on_the_serving_model(make_artifact, evaluate, monkeypatch):
    served = mock.Mock(side_effect=InterruptedError)
    monkeypatch.setattr(executor.Executor, "_evaluate_saved_model", served)
    model, baseline = (make_artifact(standard_artifacts.Model, name) for name in ("new", "old"))
    for artifact in (model, baseline):
        os.makedirs(f"{artifact.uri}/Format-TFMA")
        open(f"{artifact.uri}/Format-TFMA/saved_model.pb", "w").close()  # not read
    config = eval_config(
        """model_specs { name: "early" signature_name: "early" }
        model_specs { name: "late" signature_name: "late" }
        model_specs { name: "old" signature_name: "early" is_baseline: true }"""
    )
    examples = make_artifact(standard_artifacts.Examples, "examples")
    with pytest.raises(InterruptedError):
        evaluate(examples, model, config, baseline_model=baseline)
    (request,) = served.call_args.args
    assert (request.model_names, request.further_names) == (("early", "old"), ("late",))


def test_an_unknown_column_or_prediction_gets_the_choices(make_examples, make_schema, binary_model, evaluate):
    examples, schema = make_examples(binary_rows(5)), make_schema("fare", "hours")
    with pytest.raises(ValueError, match=r"'hour', which is not a raw feature.*: hours, fare"):
        evaluate(examples, binary_model, eval_config(BINARY % 0.5), schema=schema)
    config = eval_config('model_specs { prediction_key: "logits" } ' + AUC)
    with pytest.raises(Exception, match=r"one of: logistic, .*Received: prediction_key='logits'"):
        evaluate(examples, binary_model, config)


def decides(model, threshold, positive="tipped"):
    """Gives a model a decision threshold, in the file next to the SavedModel that would be served."""
    extra = os.path.join(model.uri, "Format-Serving", "assets.extra")
    os.makedirs(extra)
    io_utils.write_string_file(os.path.join(extra, "..", "saved_model.pb"), "")
    io_utils.write_string_file(
        os.path.join(extra, "decision.json"), json.dumps({"threshold": threshold, "positive": positive})
    )


DECISIONS = """
  model_specs {} slicing_specs {} slicing_specs { feature_keys: "hour" }
  metrics_specs {
    metrics { class_name: "BinaryAccuracy" } metrics { class_name: "Precision" }
    metrics { class_name: "Recall" threshold {
      value_threshold { lower_bound { value: 0.9 } }
      change_threshold { direction: HIGHER_IS_BETTER absolute { value: 0.3 } } } }
    metrics { class_name: "F1Score" config: '{"name": "f1_score"}' }
    metrics { class_name: "Recall" config: '{"name": "recall_at_60", "thresholds": 0.6}' }
    %s
  }
"""


@pytest.mark.more
def test_a_baseline_of_the_opposite_class_keeps_its_decisions(make_examples, make_binary_model, evaluate):
    """It says "not tipped" above 0.2, which is "tipped" below 0.8."""
    model, baseline = map(make_binary_model, ("new", "old"))
    decides(model, 0.3)
    decides(baseline, 0.2, "not tipped")
    config, checks = eval_config(DECISIONS % ""), DefaultChecks("binary")
    result = evaluate(make_examples(binary_rows()), model, config, checks, baseline_model=baseline)
    plots = details.load_details(result.evaluation.uri)["plots"]
    found = [plots[name]["confusion"]["threshold"] for name in ("model", "baseline")]
    assert found == pytest.approx([0.3, 0.8])
    expected = sklearn.metrics.recall_score(tipped(binary_rows()), scores(binary_rows()) > 0.8)
    assert result.verdict.baseline_metrics["recall"] == pytest.approx(expected)


@pytest.mark.parametrize("further", ["", 'metrics { class_name: "BinaryCrossEntropy" }'])  # by TFMA itself
def test_metrics_of_decisions_use_each_models_threshold(make_examples, make_binary_model, evaluate, further):
    """The baseline has no threshold, so it decides at 0.5."""
    model, baseline = map(make_binary_model, ("new", "old"))
    rows = binary_rows()
    # A row at the threshold itself is not above it.
    threshold = float(np.float32(min(scores(rows), key=lambda score: abs(score - 0.3))))
    decides(model, threshold)
    checks = DefaultChecks("binary")
    result = evaluate(
        make_examples(rows), model, eval_config(DECISIONS % further), checks, baseline_model=baseline
    )

    def expected(rows, threshold):
        labels, taken = tipped(rows), scores(rows).astype(np.float32) > threshold
        return {
            "binary_accuracy": sklearn.metrics.accuracy_score(labels, taken),
            "precision": sklearn.metrics.precision_score(labels, taken),
            "recall": sklearn.metrics.recall_score(labels, taken),
            "f1_score": sklearn.metrics.f1_score(labels, taken),
            "recall_at_60": sklearn.metrics.recall_score(labels, scores(rows) > 0.6),
        }

    verdict = result.verdict
    mine, old = expected(rows, threshold), expected(rows, 0.5)
    assert abs(mine["recall"] - old["recall"]) > 0.05
    assert {name: verdict.metrics[name] for name in mine} == pytest.approx(mine)
    assert {name: verdict.baseline_metrics[name] for name in old} == pytest.approx(old)
    for hour in range(3):
        part = [row for row in rows if row["hour"] == hour]
        assert (
            verdict.slices[f"hour:{hour}"].items()
            >= {name: pytest.approx(value) for name, value in expected(part, threshold).items()}.items()
        )
    # The gate judges the recall at that threshold, and its difference to the baseline's.
    change = f"from the baseline's {old['recall']:.6g} to {mine['recall']:.6g}"
    assert any(change in failure for failure in verdict.failures)
    report = details.load_details(result.evaluation.uri)
    labels, taken = tipped(rows), scores(rows).astype(np.float32) > threshold
    assert report["plots"]["model"]["confusion"] == {
        "threshold": threshold,
        "true_positives": (labels & taken).sum(),
        "false_positives": (~labels & taken).sum(),
        "false_negatives": (labels & ~taken).sum(),
        "true_negatives": (~labels & ~taken).sum(),
    }
    assert report["plots"]["baseline"]["confusion"]["threshold"] == 0.5
    low, high = report["slices"]["slices"]["Overall"]["intervals"]["recall"]
    assert low < mine["recall"] < high
    interval = stats.binomtest(int((labels & taken).sum()), int(labels.sum())).proportion_ci(0.95, "wilson")
    assert (low, high) == pytest.approx((interval.low, interval.high))
