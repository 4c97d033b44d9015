import pytest

from pipelines.config.load import load_config
from pipelines.errors import BadInputError


def test_doubts_hold_a_model_by_default():
    assert load_config(data="d.csv", label="y").gate.doubts == "hold"
    settings = ("gate.doubts=warn",)
    assert load_config(data="d.csv", label="y", settings=settings).gate.doubts == "warn"


@pytest.mark.parametrize("setting", ["gate.doubts=drop", "gate.doubt=hold"])
def test_a_wrong_setting_is_named(setting):
    with pytest.raises(BadInputError, match=r"gate\.doubt"):
        load_config(data="d.csv", label="y", settings=(setting,))
