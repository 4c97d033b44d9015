"""One step by hand. A name means the rate 0.2; in v1 0.05 for a network, 0.001 with a linear part."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import v1
from tests.estimator_core.programs import batch_of

X = tf.feature_column.numeric_column("x")
FEATURES, LABELS = np.float32([[1.0], [2.0], [3.0]]), np.float32([[0.0], [1.0], [1.0]])
SGD = tf.keras.optimizers.SGD
input_fn = batch_of({"x": FEATURES}, LABELS)


def before(estimator, name):
    return tf.train.load_variable(f"{estimator.model_dir}/model.ckpt-0", f"dnn/{name}")


def hidden_and_slopes(estimator):
    """The hidden layer before the step, and the slopes of the predictions, 2 (prediction - label)."""
    hidden = np.maximum(FEATURES @ before(estimator, "hiddenlayer_0/kernel"), 0.0)
    return hidden, 2.0 * (hidden @ before(estimator, "logits/kernel") - LABELS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("regressor", "optimizer", "reduction", "divisor"),
    [
        (est.DNNRegressor, SGD(0.05), "sum", 1.0),
        (est.DNNRegressor, SGD(0.05), "sum_over_batch_size", 3.0),
        (v1.DNNRegressor, "SGD", "weighted_sum", 1.0),
        (v1.DNNRegressor, "SGD", "weighted_mean", 3.0),
    ],
)
def test_a_network_makes_one_step(tmp_path, regressor, optimizer, reduction, divisor):
    settings = {"optimizer": optimizer, "loss_reduction": reduction}
    estimator = regressor([4], [X], str(tmp_path), **settings).train(input_fn)
    hidden, slopes = hidden_and_slopes(estimator)
    bias = estimator.get_variable_value("dnn/logits/bias")
    assert bias == pytest.approx([-0.05 * slopes.sum() / divisor], rel=1e-4)
    kernel = before(estimator, "logits/kernel") - 0.05 * hidden.T @ slopes / divisor
    np.testing.assert_allclose(estimator.get_variable_value("dnn/logits/kernel"), kernel, rtol=1e-4)


@pytest.mark.parametrize(
    ("regressor", "settings"),
    [
        (est.DNNLinearCombinedRegressor, {"dnn_optimizer": SGD(0.001), "loss_reduction": "sum"}),
        (v1.DNNLinearCombinedRegressor, {"dnn_optimizer": "SGD"}),  # whose loss is a sum
    ],
)
def test_a_network_and_a_linear_part_see_the_slopes_of_the_sum_of_their_logits(tmp_path, regressor, settings):
    descent = tf.compat.v1.train.GradientDescentOptimizer(0.5)
    linear = {"linear_feature_columns": [X], "linear_optimizer": descent}
    dnn = {"dnn_feature_columns": [X], "dnn_hidden_units": [4]}
    estimator = regressor(str(tmp_path), **linear, **dnn, **settings).train(input_fn)
    _, slopes = hidden_and_slopes(estimator)  # the linear part is 0 before the step
    weight = estimator.get_variable_value("linear/linear_model/x/weights").item()
    assert weight == pytest.approx(-0.5 * (slopes * FEATURES).sum(), rel=1e-4)
    bias = estimator.get_variable_value("linear/linear_model/bias_weights")
    assert bias == pytest.approx([-0.5 * slopes.sum()], rel=1e-4)
    bias = estimator.get_variable_value("dnn/logits/bias")
    assert bias == pytest.approx([-0.001 * slopes.sum()], rel=1e-4)
    assert estimator.get_variable_value("global_step") == 1


# The slopes at 0 are -2 label x and -2 label; of a classifier (0.5 - label) x: 0.5, -1 and -1.5.
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model", "settings", "weight", "bias"),
    [
        (est.LinearRegressor, {"loss_reduction": "sum"}, 2.0, 0.8),
        (est.LinearRegressor, {"loss_reduction": "sum_over_batch_size"}, 2.0 / 3, 0.8 / 3),
        (v1.LinearRegressor, {"loss_reduction": "weighted_sum"}, 2.0, 0.8),
        (v1.LinearRegressor, {"loss_reduction": "weighted_mean"}, 2.0 / 3, 0.8 / 3),
        (est.LinearClassifier, {}, 0.4 / 3, 0.1 / 3),
        (v1.LinearClassifier, {}, 0.4, 0.1),
    ],
)
def test_a_linear_model_makes_one_step(tmp_path, model, settings, weight, bias):
    estimator = model([X], tmp_path, optimizer="SGD", **settings).train(input_fn)
    assert estimator.get_variable_value("linear/linear_model/x/weights").item() == pytest.approx(weight)
    assert estimator.get_variable_value("linear/linear_model/bias_weights") == pytest.approx([bias])
