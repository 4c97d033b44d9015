import os

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import v1

FEATURES, LABELS = np.array([[1.0], [2.0], [3.0]]), np.array([[0.0], [1.0], [1.0]])


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": np.float32(FEATURES)}, np.float32(LABELS)))


# The learning rate of a network that is given by name is 0.05 in v1.
@pytest.mark.parametrize(
    ("regressor", "optimizer", "reduction", "divisor"),
    [
        (est.DNNRegressor, tf.keras.optimizers.SGD(0.05), "sum", 1.0),
        (est.DNNRegressor, tf.keras.optimizers.SGD(0.05), "sum_over_batch_size", 3.0),
        (v1.DNNRegressor, "SGD", "weighted_sum", 1.0),
        (v1.DNNRegressor, "SGD", "weighted_mean", 3.0),
    ],
)
def test_one_step_of_a_regressor(tmp_path, regressor, optimizer, reduction, divisor):
    """The slope of the last bias is that of the predictions, 2 (prediction - label)."""
    column = tf.feature_column.numeric_column("x")
    settings = {"optimizer": optimizer, "loss_reduction": reduction}
    estimator = regressor([4], [column], str(tmp_path), **settings).train(input_fn)

    def before(name):
        return tf.train.load_variable(os.path.join(tmp_path, "model.ckpt-0"), f"dnn/{name}")

    hidden = np.maximum(FEATURES @ before("hiddenlayer_0/kernel"), 0.0)
    slopes = 2.0 * (hidden @ before("logits/kernel") - LABELS)
    rate = 0.05
    bias = estimator.get_variable_value("dnn/logits/bias")
    assert bias == pytest.approx([-rate * slopes.sum() / divisor], rel=1e-4)
    kernel = before("logits/kernel") - rate * hidden.T @ slopes / divisor
    np.testing.assert_allclose(estimator.get_variable_value("dnn/logits/kernel"), kernel, rtol=1e-4)
