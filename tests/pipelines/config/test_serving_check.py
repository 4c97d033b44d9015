import pytest

from components import ServingCheckSettings
from pipelines.config.evaluator import ServingCheckConfig
from pipelines.config.load import load_config
from pipelines.errors import BadInputError


def test_the_defaults_are_those_of_the_component():
    config = load_config(data="d.csv", label="y").serving_check
    assert ServingCheckSettings(**config.model_dump()) == ServingCheckSettings()
    assert config.enabled
    assert ServingCheckConfig(max_load_seconds=2).max_load_seconds == 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("serving_check.row=3", "serving_check.row = 3: there is no such key. Did you mean rows?"),
        ("serving_check.max_latency_ms=0", "max_latency_ms = 0: input should be greater than 0"),
        ("serving_check.tolerance=1", "tolerance = 1: input should be less than 1"),
    ],
)
def test_what_is_wrong_is_named(setting, message):
    with pytest.raises(BadInputError) as error:
        load_config(data="d.csv", label="y", settings=(setting,))
    assert message in str(error.value)
