import inspect
import json

import pytest
from tfx.components.example_validator import component
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import DriftLimits, ExampleValidator

STATISTICS = Channel(type=standard_artifacts.ExampleStatistics)
SCHEMA = Channel(type=standard_artifacts.Schema)


def test_it_has_stock_inputs_and_outputs():
    validator = ExampleValidator(statistics=STATISTICS, schema=SCHEMA, exclude_splits=["eval"])
    assert validator.outputs["anomalies"].type is standard_artifacts.ExampleAnomalies
    assert list(validator.inputs) == ["statistics", "schema"]
    assert json.loads(validator.exec_properties["exclude_splits"]) == ["eval"]


def test_the_arguments_of_stock_tfx_come_first_in_the_same_order():
    stock = list(inspect.signature(component.ExampleValidator).parameters)
    assert list(inspect.signature(ExampleValidator).parameters)[: len(stock)] == stock
    validator = ExampleValidator(STATISTICS, SCHEMA, None)
    assert json.loads(validator.exec_properties["exclude_splits"]) == []


def test_settings_of_drift():
    validator = ExampleValidator(
        statistics=STATISTICS,
        schema=SCHEMA,
        baseline_statistics=STATISTICS,
        label="tips",
        limits=DriftLimits(l_infinity=0.2, breaking=0.5),
        moving=["when"],
    )
    assert "baseline_statistics" in validator.inputs
    assert validator.exec_properties["label"] == "tips"
    assert json.loads(validator.exec_properties["limits"]) == {
        "l_infinity": 0.2,
        "jensen_shannon": 0.02,
        "breaking": 0.5,
    }
    assert json.loads(validator.exec_properties["moving"]) == ["when"]


def test_checks_in_sql_are_refused():
    with pytest.raises(ValueError, match=r"Put ranges, domains and presence into the schema"):
        ExampleValidator(statistics=STATISTICS, schema=SCHEMA, custom_validation_config=object())
