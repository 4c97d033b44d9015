import pytest

from components import ServingCheckSettings
from pipelines.config.load import load_config
from pipelines.errors import BadInputError


def test_the_section_is_the_settings_of_the_component():
    assert load_config(data="d.csv", label="y").serving_check == ServingCheckSettings()
    given = load_config(data="d.csv", label="y", settings=("serving_check.max_load_seconds=2",)).serving_check
    assert given == ServingCheckSettings(max_load_seconds=2)


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
