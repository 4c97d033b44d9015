import inspect
import json

import pytest
from tfx.components.example_validator import component
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import DriftLimits, ExampleValidator

STATISTICS = Channel(type=standard_artifacts.ExampleStatistics)
SCHEMA = Channel(type=standard_artifacts.Schema)


def test_it_has_stock_inputs_outputs_and_arguments():
    validator = ExampleValidator(statistics=STATISTICS, schema=SCHEMA, exclude_splits=["eval"])
    assert validator.outputs["anomalies"].type is standard_artifacts.ExampleAnomalies
    assert list(validator.inputs) == ["statistics", "schema"]
    assert json.loads(validator.exec_properties["exclude_splits"]) == ["eval"]
    stock = list(inspect.signature(component.ExampleValidator).parameters)
    assert list(inspect.signature(ExampleValidator).parameters)[: len(stock)] == stock
    validator = ExampleValidator(STATISTICS, SCHEMA, None)
    assert json.loads(validator.exec_properties["exclude_splits"]) == []


def test_settings_of_drift_and_none_in_sql():
    limits = DriftLimits(l_infinity=0.2, breaking=0.5)
    settings = {"baseline_statistics": STATISTICS, "label": "tips", "limits": limits, "moving": ["when"]}
    validator = ExampleValidator(statistics=STATISTICS, schema=SCHEMA, **settings)
    assert "baseline_statistics" in validator.inputs
    assert validator.exec_properties["label"] == "tips"
    expected = {"l_infinity": 0.2, "jensen_shannon": 0.02, "breaking": 0.5}
    assert json.loads(validator.exec_properties["limits"]) == expected
    assert json.loads(validator.exec_properties["moving"]) == ["when"]
    with pytest.raises(ValueError, match=r"Put ranges, domains and presence into the schema"):
        ExampleValidator(statistics=STATISTICS, schema=SCHEMA, custom_validation_config=object())
