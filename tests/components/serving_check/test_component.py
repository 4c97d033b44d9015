import json

import pytest
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import ServingCheck, ServingCheckSettings

MODEL, EXAMPLES = Channel(type=standard_artifacts.Model), Channel(type=standard_artifacts.Examples)


def test_the_component_hands_its_settings_to_the_executor_or_the_defaults():
    settings = ServingCheckSettings(rows=7, max_latency_ms=2.5)
    given = {"label": "tips", "example_splits": ["test"], "settings": settings}
    component = ServingCheck(model=MODEL, examples=EXAMPLES, **given)
    assert component.exec_properties["label"] == "tips"
    assert json.loads(component.exec_properties["example_splits"]) == ["test"]
    settings = ServingCheckSettings.from_json(component.exec_properties["settings"])
    assert (settings.rows, settings.max_latency_ms, settings.enabled) == (7, 2.5, True)
    assert component.outputs["blessing"].type is standard_artifacts.InfraBlessing
    component = ServingCheck(model=MODEL, examples=EXAMPLES)
    assert ServingCheckSettings.from_json(component.exec_properties["settings"]) == (ServingCheckSettings())
    assert component.exec_properties["label"] is None


@pytest.mark.parametrize(
    "wrong", [{"rows": 0}, {"tolerance": 1}, {"max_load_seconds": 0}, {"max_memory_mb": -1}]
)
def test_a_wrong_setting_is_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=rf"\n{name}\n .*input_value={value},"):
        ServingCheckSettings(**wrong)
