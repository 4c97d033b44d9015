import inspect

import pytest
from tfx.components.evaluator import component
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import evaluator_pb2
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import (
    DefaultChecks,
    EvalConfig,
    Evaluator,
    MetricConfig,
    MetricsSpec,
    MetricThreshold,
    SlicingSpec,
)

EXAMPLES, MODEL = (Channel(type=kind) for kind in (standard_artifacts.Examples, standard_artifacts.Model))
CONFIG = EvalConfig(metrics_specs=[MetricsSpec(metrics=[MetricConfig(class_name="AUC")])])


def test_it_has_stock_outputs_and_the_arguments_of_stock_tfx_first():
    stock = list(inspect.signature(component.Evaluator).parameters)
    assert list(inspect.signature(Evaluator).parameters)[: len(stock)] == stock
    evaluator = Evaluator(EXAMPLES, MODEL, eval_config=CONFIG)
    assert evaluator.outputs["evaluation"].type is standard_artifacts.ModelEvaluation
    assert evaluator.outputs["blessing"].type is standard_artifacts.ModelBlessing
    thresholds = {"accuracy": MetricThreshold(value_threshold={"lower_bound": {"value": 0.6}})}
    only_thresholds = EvalConfig(metrics_specs=[MetricsSpec(thresholds=thresholds)])
    assert Evaluator(EXAMPLES, MODEL, eval_config=only_thresholds).exec_properties["eval_config"]


def test_settings_travel_as_execution_properties():
    slicing = evaluator_pb2.FeatureSlicingSpec(specs=[{"column_for_slicing": ["city"]}])
    properties = Evaluator(
        EXAMPLES,
        MODEL,
        feature_slicing_spec=slicing,
        fairness_indicator_thresholds=RuntimeParameter("fair", str),
        module_path="my_project.evaluation",
        default_checks=DefaultChecks(confidence=0.9),
    ).exec_properties
    assert "city" in properties["feature_slicing_spec"]
    assert properties["fairness_indicator_thresholds"].name == "fair"
    assert properties["module_path"] == "my_project.evaluation"
    assert DefaultChecks.from_json(properties["default_checks"]) == DefaultChecks(confidence=0.9)
    plain = Evaluator(EXAMPLES, MODEL, eval_config=CONFIG).exec_properties
    assert plain.get("default_checks") is None


OLD, A, B = {"name": "old", "is_baseline": True}, {"name": "a"}, {"name": "b"}


def model_specs(*specs, **settings):
    """Returns an EvalConfig with a change threshold, as an argument."""
    threshold = {"change_threshold": {"absolute": {"value": 0.1}}}
    metrics = MetricsSpec(thresholds={"auc": threshold}, **settings)
    return {"eval_config": EvalConfig(model_specs=[*specs], metrics_specs=[metrics])}


SQL = SlicingSpec(slice_keys_sql="SELECT city")
CROSS = {"slicing_specs": [SQL]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eval_config": None}, "needs an eval_config with metrics"),
        ({"eval_config": EvalConfig()}, "needs an eval_config with metrics"),
        ({"model": None}, r"needs a model.*run_model_analysis"),
        ({"module_file": "a.py", "module_path": "a"}, r"not both.*module_path='a'"),
        ({"feature_slicing_spec": evaluator_pb2.FeatureSlicingSpec()}, r"set slicing_specs"),
        (model_specs(OLD, {"name": "b", "is_baseline": True}), r"at most one .*\['old', 'b'\]"),
        (model_specs(OLD), r"1 in all, with is_baseline=True: \['old'\]"),
        (model_specs(A, {}), r"needs its own name.*\['a', ''\]"),
        (model_specs(A, A, OLD), r"its own name.*\['a', 'a', 'old'\]"),
        (
            model_specs({**A, "signature_name": "eval"}, B),
            r"of the serving model.*in \['a'\], among \['a', 'b'\]",
        ),
        (model_specs({**A, "example_weight_key": "w"}, B), r"_weight_key in each.*none in \['b'\], among"),
        (model_specs(A, B, model_names=["a", "c"]), r"names of model_specs: a, b\. Received: c"),
        (model_specs(A, B) | {"baseline_model": MODEL}, r"Add one.*is_baseline=True.*: names \['a', 'b'\]"),
        ({"eval_config": EvalConfig(slicing_specs=[SQL])}, r"can't slice by SQL.*'SELECT city'"),
        ({"eval_config": EvalConfig(cross_slicing_specs=[CROSS])}, r"can't slice by SQL.*'SELECT city'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Evaluator(**{"examples": EXAMPLES, "model": MODEL, "eval_config": CONFIG, **arguments})
