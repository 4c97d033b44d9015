import functools

import pytest

from estimator_core import model_fn as model_fn_lib


def _accepts(model_fn, params=None):
    model_fn_lib.check_model_fn(model_fn, params)


def test_arguments_that_are_bound_are_not_passed():
    def function(features, labels, mode, depth, width):
        del features, labels, mode, depth, width

    partial = functools.partial(function, depth=3)
    assert model_fn_lib.arg_names(partial) == ("features", "labels", "mode", "width")
    assert model_fn_lib.arg_names(functools.partial(partial, 1)) == ("labels", "mode", "width")


def test_methods_and_callables_are_model_fns():
    class Model:
        def model_fn(self, features, mode):
            del features, mode

        def __call__(self, features, labels):
            del features, labels

    _accepts(Model().model_fn)
    _accepts(Model())


@pytest.mark.parametrize(
    ("model_fn", "params", "message"),
    [
        (lambda labels: None, None, "must include features"),
        (lambda features: None, {"a": 1}, "does not include params"),
        (lambda features, depth: None, None, r"not expected args: \['depth'\]"),
    ],
)
def test_model_fns_that_cannot_be_called_are_refused(model_fn, params, message):
    with pytest.raises(ValueError, match=message):
        _accepts(model_fn, params)


def test_optional_extra_arguments_are_allowed():
    _accepts(lambda features, labels, mode, depth=3: None)


def test_labels_for_a_model_fn_without_labels_are_refused():
    with pytest.raises(ValueError, match="does not take labels"):
        model_fn_lib.call_model_fn(lambda features: None, 1, 2, "train", {}, None)


def test_a_model_fn_must_return_a_spec():
    with pytest.raises(ValueError, match=r"should return an EstimatorSpec.*7"):
        model_fn_lib.call_model_fn(lambda features: 7, 1, None, "train", {}, None)


def test_no_model_fn_is_refused():
    with pytest.raises(ValueError, match="model_fn must be provided"):
        _accepts(None)
