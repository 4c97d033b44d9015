import numpy as np
import pytest
import tensorflow as tf

from estimator_core.keras_models import model_inputs


def test_sample_weights_are_split_off_by_exactly_two_keys():
    split = model_inputs.split_sample_weights
    assert split({"features": 1, "sample_weights": 2}) == (1, 2)
    for features in ({"features": 1}, {"features": 1, "sample_weights": 2, "x": 3}, 4):
        assert split(features) == (features, None)


def test_numpy_arrays_become_tensors():
    tensor = tf.constant(1)
    features, labels = model_inputs.as_tensors(({"a": np.ones(2), "b": tensor}, np.float32(3)))
    assert features["b"] is tensor
    assert (features["a"].dtype, features["a"].shape, labels.dtype) == (tf.float64, [2], tf.float32)
    assert model_inputs.as_tensors((tensor, None)) == (tensor, None)


@pytest.mark.parametrize(
    ("names", "given", "aliases", "expected"),
    [
        *((["a", "b"], given, {}, [1, 2]) for given in ({"b": 2, "a": 1, "c": 3}, (1, 2), [1, 2])),
        (["a"], 1, {}, [1]),
        (["a"], {"other": 1}, {"other": "a"}, [1]),
    ],
    ids=["by name", "tuple", "list", "a single tensor", "by an alias"],
)
def test_tensors_come_in_the_order_of_the_names(names, given, aliases, expected):
    assert model_inputs.order_tensors(names, given, "features", aliases) == expected


def test_missing_names_and_other_numbers_of_tensors_are_refused():
    with pytest.raises(KeyError, match=r"dict of labels lacks \['b'\].*\['a', 'b'\].*\['a', 'z'\]"):
        model_inputs.order_tensors(["a", "b"], {"z": 0, "a": 1}, "labels", {})
    with pytest.raises(ValueError, match=r"takes 2 features, \['a', 'b'\].*Received: 1"):
        model_inputs.order_tensors(["a", "b"], 1, "features", {})


def test_outputs_without_names_are_numbered_from_1():
    named = model_inputs.named_outputs
    assert named(None, [5, 6]) == {"output_1": 5, "output_2": 6}
    assert named(["a"], 5) == {"a": 5}
    assert named(["a"], {"b": 5}) == {"b": 5}


def test_only_a_model_without_a_loss_needs_no_labels():
    class Compiled:
        loss = None

    model_inputs.check_needs_no_labels(Compiled())
    Compiled.loss = "mse"
    with pytest.raises(ValueError, match=r"needs labels.*loss='mse'"):
        model_inputs.check_needs_no_labels(Compiled())
