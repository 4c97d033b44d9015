import functools
import inspect

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tpu
from estimator_core.tpu import user_functions


def test_input_fn_finds_the_batch_size_in_its_params():
    def input_fn(params, input_context=None, mode=None):
        return dict(params), mode

    call = user_functions.input_fn_with_batch_size(input_fn, 32)
    assert set(inspect.signature(call).parameters) == {"params", "input_context", "mode"}
    params = {"other": 1}
    assert call(params=params, mode="train") == ({"other": 1, "batch_size": 32}, "train")
    without = user_functions.input_fn_with_batch_size(input_fn, None)
    assert without(params={"other": 1}) == ({"other": 1}, None)


def test_an_input_fn_of_partial():
    def input_fn(params, path):
        return path, params["batch_size"]

    call = user_functions.input_fn_with_batch_size(functools.partial(input_fn, path="p"), 7)
    assert call(params={}) == ("p", 7)


@pytest.mark.parametrize(
    ("input_fn", "error", "message"),
    [
        ("data.csv", TypeError, "input_fn='data.csv'"),
        (lambda: None, ValueError, "does not include params"),
        (lambda features: None, ValueError, r"does not include params.*\('features',\)"),
    ],
)
def test_what_is_no_input_fn(input_fn, error, message):
    with pytest.raises(error, match=message):
        user_functions.input_fn_with_batch_size(input_fn, 2)


class HyperParameters(dict):
    """Hyperparameters as HParams had them: a name is added once, and set from then on."""

    def add_hparam(self, name, value):
        assert name not in self
        self[name] = value

    def set_hparam(self, name, value):
        assert name in self
        self[name] = value


@pytest.mark.parametrize("params", [{}, HyperParameters(), HyperParameters(batch_size=3)], ids=str)
def test_params_may_be_of_another_kind(params):
    call = user_functions.input_fn_with_batch_size(lambda params: params["batch_size"], 5)
    assert call(params=params) == 5


def run_model_fn(model_fn, mode="train", batch_sizes=None, **arguments):
    with tf.Graph().as_default():
        tf.compat.v1.train.create_global_step()
        call = user_functions.model_fn_on_host(model_fn, {"train": 8} if batch_sizes is None else batch_sizes)
        params = {"rate": 0.5}
        spec = call(features={"x": tf.constant([1.0])}, mode=mode, params=params, **arguments)
    return spec, params, call


@pytest.mark.parametrize("spec_class", [tpu.TPUEstimatorSpec, est.EstimatorSpec])
def test_model_fn_gets_its_params_and_gives_an_estimator_spec(spec_class):
    def model_fn(features, labels, mode, params):
        assert (labels, mode) == ("the labels", "train")
        loss = tf.reduce_sum(features["x"])
        return spec_class(mode, loss=loss, train_op=tf.identity(loss))

    spec, params, call = run_model_fn(model_fn, labels="the labels")
    assert isinstance(spec, est.EstimatorSpec)
    assert params == {"rate": 0.5, "batch_size": 8, "use_tpu": False}
    assert set(inspect.signature(call).parameters) == {"features", "labels", "mode", "params"}


def test_a_mode_without_batch_size_has_none_in_params():
    def model_fn(features, params):
        return est.EstimatorSpec("infer", predictions=features)

    _, params, call = run_model_fn(model_fn, "infer", {"train": 8, "infer": None})
    assert params == {"rate": 0.5, "use_tpu": False}
    assert "mode" in inspect.signature(call).parameters  # which model_fn itself does not take


def test_model_fn_without_params_is_refused():
    with pytest.raises(ValueError, match=r"model_fn .* does not include params"):
        run_model_fn(lambda features, mode: None)
