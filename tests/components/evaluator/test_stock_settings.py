"""EvalConfigs and arguments of the years with Estimators, as TFX 1.0 to 1.15 and TFMA 0.46 took them."""

import logging
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow_model_analysis.proto import config_pb2
from tfx.proto import evaluator_pb2
from tfx.utils import proto_utils

from components.errors import SettingError
from components.evaluator.gate.default_checks import DefaultChecks
from tests.components.evaluator.conftest import FLOAT, eval_config, save_serving_model, served

INTEGER = tf.io.FixedLenFeature([], tf.int64)

# label, score, weight, city, hour; the class is right in all but the second and the last.
ROWS = [
    dict(zip(("label", "score", "weight", "city", "hour"), row, strict=True))
    for row in (
        (1, 0.9, 1.0, "Oslo", 7),
        (0, 0.8, 2.0, "Oslo", 8),
        (0, 0.3, 1.0, "Oslo", 8),
        (1, 0.7, 4.0, "Rome", 7),
        (0, 0.1, 1.0, "Rome", 7),
        (1, 0.2, 1.0, "Rome", 8),
    )
]
WEIGHTED = (1 + 1 + 4 + 1) / 10


def metrics_of_model(features, labels, predictions):
    right = predictions["logistic"] > 0.5
    weights = features["weight"]
    return {"accuracy": tf.compat.v1.metrics.accuracy(labels, right, weights)}


def logistic_model(make_model, name="model", score=1.0, metrics=metrics_of_model):
    return make_model(
        {"label": INTEGER, "score": FLOAT, "weight": FLOAT},
        predict=lambda f: {"logistic": score * f["score"]},
        label=lambda f: f["label"],
        name=name,
        metrics=metrics,
    )


@pytest.fixture
def model(make_model):
    return logistic_model(make_model)


THRESHOLD = """
  model_specs { signature_name: "eval" label_key: "label" }
  slicing_specs {} slicing_specs { feature_keys: "city" }
  metrics_specs { thresholds { key: "%s" value { value_threshold { lower_bound { value: %s } } } } }
"""


def test_a_threshold_for_the_models_own_metric_and_an_unknown_label(make_examples, model, evaluate, caplog):
    examples = make_examples(ROWS)
    with caplog.at_level(logging.INFO, "components.evaluator.executor"):
        passed = evaluate(examples, model, eval_config(THRESHOLD % ("accuracy", 0.2))).verdict
    assert "BLESSED, without a baseline: " in caplog.text
    assert "label_key" not in caplog.text
    assert passed.blessed
    assert passed.metrics == {"accuracy": pytest.approx(WEIGHTED)}
    assert passed.slices["city:Oslo"] == {"accuracy": pytest.approx(2 / 4)}
    assert passed.slices["city:Rome"] == {"accuracy": pytest.approx(5 / 6)}
    caplog.clear()
    unknown_label = (THRESHOLD % ("accuracy", 0.6)).replace('"label"', '"labell"')
    with caplog.at_level(logging.INFO, "components.evaluator.executor"):
        failed = evaluate(examples, model, eval_config(unknown_label)).verdict
    sentence = "accuracy where city = 'Oslo': 0.5 is below the lower bound 0.6"
    assert failed.failures == [sentence]
    assert f"NOT_BLESSED: {sentence}" in caplog.messages
    assert " BLESSED" not in caplog.text
    (warning,) = [message for message in caplog.messages if "label_key" in message]
    assert warning.startswith("label_key='labell' of the ModelSpec is not used: there is no raw feature")


@pytest.mark.more
def test_thresholds_per_slice_and_across_slices(make_examples, model, evaluate):
    config = eval_config(
        """
        slicing_specs {} slicing_specs { feature_keys: "city" }
        cross_slicing_specs { baseline_spec {} slicing_specs { feature_keys: "city" } }
        metrics_specs {
          per_slice_thresholds { key: "accuracy" value { thresholds {
            slicing_specs { feature_values { key: "city" value: "Rome" } }
            threshold { value_threshold { lower_bound { value: 0.9 } } } } } }
          cross_slice_thresholds { key: "accuracy" value { thresholds {
            cross_slicing_specs { baseline_spec {} slicing_specs { feature_keys: "city" } }
            threshold { value_threshold { upper_bound { value: 0.1 } } } } } }
        }"""
    )
    verdict = evaluate(make_examples(ROWS), model, config).verdict
    # TFMA subtracts the slice from all: 0.7 - 0.5 for Oslo, 0.7 - 0.8333 for Rome.
    assert sorted(verdict.failures) == [
        "accuracy 0.2 is above the upper bound 0.1 (slice: Overall against city:Oslo)",
        "accuracy where city = 'Rome': 0.833333 is below the lower bound 0.9",
    ]


@pytest.mark.more
def test_a_name_that_tfma_knows_is_its_metric(make_examples, model, evaluate):
    config = THRESHOLD % ("auc", 0.7)
    verdict = evaluate(make_examples(ROWS), model, eval_config(config)).verdict
    # Of the 9 pairs of a 1 and a 0, 6 are in order: 0.9 is above all, 0.7 above two, 0.2 above one.
    assert verdict.metrics == {"auc": pytest.approx(6 / 9, abs=1e-4)}
    assert verdict.failures[0] == "auc 0.666667 is below the lower bound 0.7 (slice: Overall)"
    # With a MetricConfig of the same name it is that one's.
    config += 'metrics_specs { metrics { class_name: "FPR" config: \'{"name": "auc"}\' } }'
    examples = make_examples(ROWS, name="2")
    verdict = evaluate(examples, model, eval_config(config)).verdict
    assert verdict.metrics == {"auc": pytest.approx(1 / 3)}
    # A name that neither knows is an error.
    message = r"\{'binary_acuracy': \.\.\.\}.* no metric .*own: accuracy\. .*nearest first: binary_accuracy,"
    with pytest.raises(SettingError, match=message):
        evaluate(examples, model, eval_config(THRESHOLD % ("binary_acuracy", 0.5)))


CHANGE = """
  slicing_specs {}
  metrics_specs { thresholds { key: "accuracy" value {
    change_threshold { direction: HIGHER_IS_BETTER absolute { value: 0 } } } } }
"""


def test_a_baseline_that_lacks_the_metric_is_named(make_examples, make_model, model, evaluate):
    baseline = logistic_model(make_model, "baseline", metrics=None)
    evaluated = evaluate(make_examples(ROWS), model, eval_config(CHANGE), baseline_model=baseline)
    (failure,) = evaluated.verdict.failures
    assert "the baseline model has no metric of this name (slice: Overall)" in failure


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "model_specs",
    [
        'model_specs { name: "only" signature_name: "eval" }',
        'model_specs { name: "old" is_baseline: true } model_specs { name: "new" }',
    ],
)
def test_models_may_have_any_names(model_specs, make_examples, make_model, model, evaluate):
    baseline = logistic_model(make_model, "baseline", score=0)  # right for every 0
    config = eval_config(model_specs + CHANGE)
    examples = make_examples(ROWS)
    verdict = evaluate(examples, model, config, baseline_model=baseline).verdict
    assert verdict.blessed
    assert verdict.metrics["accuracy"] == pytest.approx(WEIGHTED)
    assert verdict.baseline_metrics == {"accuracy": pytest.approx((2 + 1 + 1) / 10)}
    assert evaluate(examples, model, config).verdict.blessed  # without a baseline, no change


def test_a_feature_slicing_spec_slices_the_models_own_metrics(make_examples, model, evaluate):
    spec = evaluator_pb2.FeatureSlicingSpec(specs=[{"column_for_slicing": ["city", "hour"]}])
    properties = {
        "eval_config": None,
        "feature_slicing_spec": proto_utils.proto_to_json(spec),
        "fairness_indicator_thresholds": "[0.25, 0.5]",
    }
    verdict = evaluate(make_examples(ROWS), model, config_pb2.EvalConfig(), properties=properties).verdict
    assert verdict.metrics["accuracy"] == pytest.approx(WEIGHTED)
    assert sorted(verdict.slices) == [f"city_X_hour:{a}_X_{b}" for a in ("Oslo", "Rome") for b in (7, 8)]
    assert verdict.slices["city_X_hour:Oslo_X_8"]["accuracy"] == pytest.approx(1 / 3)
    # Of the three 0s, 0.8 and 0.3 are above 0.25, and 0.8 is above 0.5; of the 1s, two are.
    name = "fairness_indicators_metrics/%s"
    assert verdict.metrics[name % "false_positive_rate@0.25"] == pytest.approx(2 / 3)
    assert verdict.metrics[name % "false_positive_rate@0.50"] == pytest.approx(1 / 3)
    assert verdict.metrics[name % "recall@0.50"] == pytest.approx(2 / 3)
    assert verdict.metrics[name % "positive_rate@0.50"] == pytest.approx(3 / 6)
    assert verdict.failures == ["No threshold is configured, so the model cannot be judged."]


def test_weights_by_output_are_the_weights_of_the_output(make_examples, model, evaluate):
    config = """
      model_specs { example_weight_keys { key: "a" value: "weight" } %s }
      metrics_specs { metrics { class_name: "BinaryAccuracy" } }"""
    examples = make_examples(ROWS)
    verdict = evaluate(examples, model, eval_config(config % "")).verdict
    assert verdict.metrics == {"binary_accuracy": pytest.approx(WEIGHTED)}
    two = eval_config(config % 'example_weight_keys { key: "b" value: "score" }')
    with pytest.raises(SettingError, match=r"set example_weight_key .*instead.*'b': 'score'"):
        evaluate(examples, model, two)


MODULE = """
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.metrics import metric_types

calls = []

class HighestScore(tfma.metrics.Metric):
    def __init__(self, name="highest_score"):
        super().__init__(computations, name=name)

def computations(name, model_names, example_weighted):
    keys = [metric_types.MetricKey(name, m, example_weighted=example_weighted) for m in model_names]
    return [metric_types.MetricComputation(
        keys=[key], preprocessors=[metric_types.FeaturePreprocessor(["score"])], combiner=Highest(key)
    ) for key in keys]

class Highest(__import__("apache_beam").CombineFn):
    def __init__(self, key):
        self.key = key
    def create_accumulator(self):
        return 0.0
    def add_input(self, highest, inputs):
        return max(highest, float(inputs.features["score"][0]))
    def merge_accumulators(self, accumulators):
        return max(accumulators)
    def extract_output(self, highest):
        return {self.key: highest}
"""
FUNCTIONS = """
def custom_eval_shared_model(eval_saved_model_path, model_name, eval_config, **kwargs):
    calls.append(model_name)
    return tfma.default_eval_shared_model(
        eval_saved_model_path, model_name=model_name, eval_config=eval_config, **kwargs)

def custom_extractors(eval_shared_model, eval_config, tensor_adapter_config):
    calls.append("extractors")
    return tfma.default_extractors(
        eval_shared_model=eval_shared_model, eval_config=eval_config,
        tensor_adapter_config=tensor_adapter_config)
"""


@pytest.fixture
def serving_model(make_artifact):
    return save_serving_model(make_artifact, "served", serving_default=served("score"))


@pytest.mark.more
@pytest.mark.parametrize("kind", ["evaluation model", "serving model"])
def test_metrics_and_functions_of_the_users(kind, tmp_path, make_examples, model, serving_model, evaluate):
    name = f"module_of_{kind.partition(' ')[0]}"
    module = tmp_path / f"{name}.py"
    is_served = kind == "serving model"
    module.write_text(MODULE + (FUNCTIONS if is_served else ""))
    config = eval_config(
        f"""model_specs {{ label_key: "label" }}
        metrics_specs {{
          metrics {{ class_name: "HighestScore" module: "{name}" }}
          thresholds {{ key: "highest_score" value {{ value_threshold {{ upper_bound {{ value: 0.8 }} }} }} }}
        }}"""
    )
    evaluated, properties = serving_model if is_served else model, {"module_file": str(module)}
    verdict = evaluate(make_examples(ROWS), evaluated, config, properties=properties).verdict
    assert verdict.metrics == {"highest_score": pytest.approx(0.9)}
    assert verdict.failures == ["highest_score 0.9 is above the upper bound 0.8 (slice: Overall)"]


@pytest.mark.more
def test_a_serving_model_has_no_signature_eval(make_examples, serving_model, evaluate):
    config = eval_config(THRESHOLD % ("auc", 0.5))
    with pytest.raises(SettingError, match=r"'eval' .* is the signature of an evaluation model"):
        evaluate(make_examples(ROWS), serving_model, config)
    config.model_specs[0].signature_name = ""
    verdict = evaluate(make_examples(ROWS, name="2"), serving_model, config).verdict
    assert verdict.metrics == {"auc": pytest.approx(6 / 9, abs=1e-4)}
    unknown = eval_config(THRESHOLD.replace("signature_name", "name") % ("accuracy", 0.5))
    message = r"no metric of this name\. The serving model .* defines no metrics"
    with pytest.raises(SettingError, match=message):
        evaluate(make_examples(ROWS, name="3"), serving_model, unknown)


TWO_SPECS = """
  model_specs { name: "early" signature_name: "early" label_key: "x" example_weight_key: "w" }
  model_specs { name: "late" signature_name: "late" label_key: "y" example_weight_key: "w" }
  model_specs { name: "old" signature_name: "early" label_key: "x" example_weight_key: "w" is_baseline: true }
  metrics_specs { metrics { class_name: "BinaryAccuracy" threshold {
    value_threshold { lower_bound { value: %s } }
    change_threshold { direction: HIGHER_IS_BETTER absolute { value: 0.3 } } } } }
"""


@pytest.mark.more
def test_several_model_specs_are_judged_on_the_serving_model(make_examples, make_artifact, evaluate, caplog):
    model = save_serving_model(make_artifact, "new", early=served("a"), late=served("b"))
    # An evaluation model beside it is not read.
    (Path(model.uri) / "Format-TFMA").mkdir()
    (Path(model.uri) / "Format-TFMA" / "saved_model.pb").touch()
    names = ("x", "a", "y", "b", "w")
    values = [(1, 0.9, 0, 0.9, 1.0), (0, 0.2, 0, 0.3, 2.0), (1, 0.3, 1, 0.4, 1.0)]
    examples = make_examples([dict(zip(names, row, strict=True)) for row in values])
    # `early` errs in the third row, `late` in the first and the third; the weights are 1, 2 and 1.
    first = evaluate(examples, model, eval_config(TWO_SPECS % 0.4)).verdict
    assert first.blessed
    assert first.metrics == {"binary_accuracy": pytest.approx(3 / 4)}
    assert first.further_models == {"late": {"binary_accuracy": pytest.approx(2 / 4)}}
    # The baseline says 1 - a, which is right in the third row alone.
    early = served("a", function=lambda a: 1.0 - a)
    baseline = save_serving_model(make_artifact, "old", early=early, late=served("b"))
    config = eval_config(TWO_SPECS % 0.6)
    with caplog.at_level(logging.WARNING):
        failed = evaluate(examples, model, config, DefaultChecks(), baseline_model=baseline).verdict
    assert failed.baseline_metrics == {"binary_accuracy": pytest.approx(1 / 4)}
    sentences = [
        "binary_accuracy 0.5 is below the lower bound 0.6 (model: late, slice: Overall)",
        "binary_accuracy changed by +0.25 from the baseline's 0.25 to 0.5, where at least +0.3 is required "
        "(model: late, slice: Overall)",
    ]
    assert sorted(failed.failures)[-2:] == sentences
    assert {f"NOT_BLESSED: {sentence}" for sentence in sentences} <= {*caplog.messages}
