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


def test_it_has_stock_outputs():
    evaluator = Evaluator(
        examples=Channel(type=standard_artifacts.Examples),
        model=Channel(type=standard_artifacts.Model),
        eval_config=EvalConfig(metrics_specs=[MetricsSpec(metrics=[MetricConfig(class_name="AUC")])]),
    )
    assert evaluator.outputs["evaluation"].type is standard_artifacts.ModelEvaluation
    assert evaluator.outputs["blessing"].type is standard_artifacts.ModelBlessing


@pytest.mark.parametrize("eval_config", [None, EvalConfig()])
def test_metrics_are_required(eval_config):
    with pytest.raises(ValueError, match="needs an eval_config with metrics"):
        Evaluator(
            examples=Channel(type=standard_artifacts.Examples),
            model=Channel(type=standard_artifacts.Model),
            eval_config=eval_config,
        )


EXAMPLES, MODEL = (Channel(type=kind) for kind in (standard_artifacts.Examples, standard_artifacts.Model))


def test_the_arguments_of_stock_tfx_come_first_in_the_same_order():
    stock = list(inspect.signature(component.Evaluator).parameters)
    assert list(inspect.signature(Evaluator).parameters)[: len(stock)] == stock


def test_thresholds_alone_are_enough():
    thresholds = {"accuracy": MetricThreshold(value_threshold={"lower_bound": {"value": 0.6}})}
    config = EvalConfig(metrics_specs=[MetricsSpec(thresholds=thresholds)])
    assert Evaluator(EXAMPLES, MODEL, eval_config=config).exec_properties["eval_config"]


def test_stock_settings_travel_as_execution_properties():
    slicing = evaluator_pb2.FeatureSlicingSpec(specs=[{"column_for_slicing": ["city"]}])
    properties = Evaluator(
        EXAMPLES,
        MODEL,
        feature_slicing_spec=slicing,
        fairness_indicator_thresholds=RuntimeParameter("fair", str),
        module_path="my_project.evaluation",
    ).exec_properties
    assert "city" in properties["feature_slicing_spec"]
    assert properties["fairness_indicator_thresholds"].name == "fair"
    assert properties["module_path"] == "my_project.evaluation"


OLD = {"name": "old", "is_baseline": True}


def model_specs(*specs, **settings):
    """Returns an EvalConfig with a change threshold, as an argument."""
    threshold = {"change_threshold": {"absolute": {"value": 0.1}}}
    metrics = MetricsSpec(thresholds={"auc": threshold}, **settings)
    return {"eval_config": EvalConfig(model_specs=[*specs], metrics_specs=[metrics])}


SQL = SlicingSpec(slice_keys_sql="SELECT city")
CONFIG = EvalConfig(metrics_specs=[MetricsSpec(metrics=[MetricConfig(class_name="AUC")])])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": None}, r"needs a model.*run_model_analysis"),
        ({"module_file": "a.py", "module_path": "a"}, r"not both.*module_path='a'"),
        ({"feature_slicing_spec": evaluator_pb2.FeatureSlicingSpec()}, r"set slicing_specs"),
        (model_specs(OLD, {"name": "b", "is_baseline": True}), r"at most one .*\['old', 'b'\]"),
        (model_specs(OLD), r"1 in all, with is_baseline=True: \['old'\]"),
        (model_specs({"name": "a"}, {}), r"needs its own name.*\['a', ''\]"),
        (model_specs({"name": "a"}, {"name": "a"}, OLD), r"its own name.*\['a', 'a', 'old'\]"),
        (
            model_specs({"name": "a", "signature_name": "eval"}, {"name": "b"}),
            r"signatures of the serving model.*in \['a'\], among \['a', 'b'\]",
        ),
        (
            model_specs({"name": "a", "example_weight_key": "w"}, {"name": "b"}),
            r"example_weight_key in each.*none in \['b'\], among",
        ),
        (
            model_specs({"name": "a"}, {"name": "b"}, model_names=["a", "c"]),
            r"names of model_specs: a, b\. Received: c",
        ),
        (
            model_specs({"name": "a"}, {"name": "b"}) | {"baseline_model": MODEL},
            r"Add one to model_specs.*is_baseline=True.*Received: names \['a', 'b'\]",
        ),
        ({"eval_config": EvalConfig(slicing_specs=[SQL])}, r"can't slice by SQL.*'SELECT city'"),
        (
            {"eval_config": EvalConfig(cross_slicing_specs=[{"slicing_specs": [SQL]}])},
            r"can't slice by SQL.*'SELECT city'",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Evaluator(**{"examples": EXAMPLES, "model": MODEL, "eval_config": CONFIG, **arguments})


def test_the_default_checks_travel_as_an_execution_property():
    inputs = {
        "examples": Channel(type=standard_artifacts.Examples),
        "model": Channel(type=standard_artifacts.Model),
        "eval_config": EvalConfig(metrics_specs=[MetricsSpec(metrics=[MetricConfig(class_name="AUC")])]),
    }
    assert Evaluator(**inputs).exec_properties.get("default_checks") is None
    settings = DefaultChecks(confidence=0.9)
    text = Evaluator(**inputs, default_checks=settings).exec_properties["default_checks"]
    assert DefaultChecks.from_json(text) == settings
