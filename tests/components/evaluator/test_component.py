import pytest
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import DefaultChecks, EvalConfig, Evaluator, MetricConfig, MetricsSpec


def test_it_has_stock_outputs() -> None:
    evaluator = Evaluator(
        examples=Channel(type=standard_artifacts.Examples),
        model=Channel(type=standard_artifacts.Model),
        eval_config=EvalConfig(
            metrics_specs=[MetricsSpec(metrics=[MetricConfig(class_name="AUC")])]
        ),
    )
    assert evaluator.outputs["evaluation"].type is standard_artifacts.ModelEvaluation
    assert evaluator.outputs["blessing"].type is standard_artifacts.ModelBlessing


@pytest.mark.parametrize("eval_config", [None, EvalConfig()])
def test_metrics_are_required(eval_config: EvalConfig | None) -> None:
    with pytest.raises(ValueError, match="needs an eval_config with metrics"):
        Evaluator(
            examples=Channel(type=standard_artifacts.Examples),
            model=Channel(type=standard_artifacts.Model),
            eval_config=eval_config,
        )


def test_the_default_checks_travel_as_an_execution_property() -> None:
    inputs = {
        "examples": Channel(type=standard_artifacts.Examples),
        "model": Channel(type=standard_artifacts.Model),
        "eval_config": EvalConfig(
            metrics_specs=[MetricsSpec(metrics=[MetricConfig(class_name="AUC")])]
        ),
    }
    assert Evaluator(**inputs).exec_properties.get("default_checks") is None
    settings = DefaultChecks(confidence=0.9)
    text = Evaluator(**inputs, default_checks=settings).exec_properties["default_checks"]
    assert DefaultChecks.from_json(text) == settings
