import pytest
import tensorflow.compat.v1 as tf1

import estimator_core
from estimator_core.installation.hparams import HParams
from tests.estimator_core.programs import batch_of, counting


@pytest.fixture
def hparams():
    return HParams(rate=0.5, steps=3, name="a", deep=False, layers=[8, 4], other=None)


def test_values_are_attributes(hparams):
    assert (hparams.rate, hparams.layers) == (0.5, [8, 4])
    assert hparams.get("steps") == 3
    assert hparams.get("missing", 7) == 7
    assert "name" in hparams
    assert "missing" not in hparams
    assert HParams(b=1, a="x").values() == {"b": 1, "a": "x"}


def test_text_and_json(hparams):
    assert hparams.parse("rate=1e-3,steps=12,name=b c,deep=true,layers=[1, 2,3],layers[1]=9") is hparams
    expected = {"rate": 1e-3, "steps": 12, "name": "b c", "deep": True, "layers": [1, 9, 3], "other": None}
    assert hparams.values() == expected
    hparams.parse_json('{"rate": 2, "other": "any", "layers": [5]}')
    assert (hparams.rate, type(hparams.rate), hparams.other, hparams.layers) == (2.0, float, "any", [5])
    assert HParams(a=[1], b=True).to_json(sort_keys=True) == '{"a": [1], "b": true}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps=1.5", "Could not parse .*'steps' of type int. Received: '1.5'"),
        ("deep=maybe", "Could not parse"),
        ("missing=1", "Unknown hyperparameter type for missing"),
        ("steps", "Malformed"),
        ("layers=3", "must be a list"),
        ("steps=[3]", "must be a single value"),
    ],
)
def test_wrong_text_is_an_error(hparams, text, message):
    with pytest.raises(ValueError, match=message):
        hparams.parse(text)


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 1.5), ("steps", "1"), ("steps", True), ("deep", 1), ("rate", "1")]
)
def test_values_of_another_type(hparams, name, value):
    with pytest.raises(ValueError, match=f"'{name}' is of type"):
        hparams.set_hparam(name, value)


def test_adding_and_removing(hparams):
    hparams.add_hparam("new", 1)
    hparams.del_hparam("steps")
    assert hparams.new == 1
    assert "steps" not in hparams
    with pytest.raises(KeyError, match="Received: 'steps'"):
        hparams.set_hparam("steps", 1)
    for name in ("rate", "parse"):
        with pytest.raises(ValueError, match="is reserved"):
            hparams.add_hparam(name, 1)
    with pytest.raises(ValueError, match="cannot be empty"):
        hparams.add_hparam("empty", [])


def test_a_model_fn_gets_them(hparams):
    def model_fn(features, labels, mode, params):
        return counting(mode, tf1.get_variable("w", initializer=params.rate))

    model = estimator_core.Estimator(model_fn, params=hparams).train(batch_of({"x": 1.0}), steps=1)
    assert model.get_variable_value("w") == 0.5
