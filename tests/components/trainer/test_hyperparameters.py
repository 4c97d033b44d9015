from types import SimpleNamespace

import pytest

from components import hyperparameters

DEFAULTS = {"learning_rate": 0.01, "units": 64}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, DEFAULTS),
        ({"space": [], "values": {}}, DEFAULTS),
        ({"space": [], "values": {"units": 32, "tuner/epochs": 7}}, {"learning_rate": 0.01, "units": 32}),
    ],
)
def test_the_values_of_a_tuner_take_the_place_of_defaults(config, expected):
    assert hyperparameters(SimpleNamespace(hyperparameters=config), DEFAULTS) == expected


def test_a_value_that_is_not_read_is_an_error():
    args = SimpleNamespace(hyperparameters={"values": {"unit": 32}})
    with pytest.raises(ValueError, match=r"'unit', which the training .* Did you mean 'units'"):
        hyperparameters(args, DEFAULTS)
