import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import zeros


def _model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    model.compile("sgd", "mse")
    return model


def _own_estimator(model_dir, steps):
    """An Estimator that adds 1 to the kernel and 2 to the bias of zeros in each step."""

    def model_fn(features, labels, mode):
        kernel, bias = zeros("dense/kernel", [2, 1]), zeros("dense/bias", [1])
        step = tf1.train.get_global_step()
        train_op = tf.group(kernel.assign_add([[1.0], [1.0]]), bias.assign_add([2.0]), step.assign_add(1))
        return est.EstimatorSpec(mode, loss=tf.reduce_sum(bias), train_op=train_op)

    config = est.RunConfig(model_dir=str(model_dir), save_checkpoints_steps=1)
    estimator = est.Estimator(model_fn, config=config)
    if steps:
        estimator.train(lambda: tf.data.Dataset.from_tensors((1.0, 1.0)).repeat(), steps=steps)
    return estimator


def test_weights_of_any_estimator_by_the_names_of_the_variables(tmp_path):
    estimator, model = _own_estimator(tmp_path, steps=2), _model()
    assert est.to_keras(estimator, model) is model
    np.testing.assert_array_equal(model.get_weights()[0], [[2.0], [2.0]])
    np.testing.assert_array_equal(model.get_weights()[1], [4.0])
    est.to_keras(estimator, model, checkpoint_path=str(tmp_path / "model.ckpt-1"))
    np.testing.assert_array_equal(model.get_weights()[1], [2.0])


def test_another_model_than_the_estimators_own(tmp_path):
    model, other = _model(), _model()
    estimator = est.model_to_estimator(model, model_dir=str(tmp_path))
    before = [weight.copy() for weight in model.get_weights()]
    x, y = np.ones([4, 2], np.float32), np.full([4, 1], 9.0, np.float32)
    estimator.train(lambda: tf.data.Dataset.from_tensors((x, y)), steps=1)
    assert est.to_keras(estimator, other) is other
    for weight, old in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old)
    # The slope of the mean of (p - 9)^2 by the bias is 2 (p - 9); the rate of "sgd" is 0.01.
    prediction = before[0].sum()
    np.testing.assert_allclose(other.get_weights()[1], [-0.02 * (prediction - 9.0)], rtol=1e-5)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ValueError, match="Couldn't find trained model at"):
        est.to_keras(_own_estimator(tmp_path / "none", steps=0), _model())
    estimator = _own_estimator(tmp_path / "one", steps=1)
    with pytest.raises(ValueError, match="keras_model is needed"):
        est.to_keras(estimator)
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="other")])
    with pytest.raises(ValueError, match=r"lacks \['other/kernel', 'other/bias'\]"):
        est.to_keras(estimator, other)
