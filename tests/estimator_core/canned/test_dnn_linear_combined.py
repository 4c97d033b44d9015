import os

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import v1

SGD = tf.keras.optimizers.SGD(0.001)
FEATURES, LABELS = np.array([[1.0], [2.0], [3.0]]), np.array([[0.0], [1.0], [1.0]])


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": np.float32(FEATURES)}, np.float32(LABELS)))


@pytest.mark.parametrize(
    ("regressor", "settings"),
    [
        (est.DNNLinearCombinedRegressor, {"dnn_optimizer": SGD, "loss_reduction": "sum"}),
        # The learning rate of a network that is given by name is 0.001 in v1, and the loss a sum.
        (v1.DNNLinearCombinedRegressor, {"dnn_optimizer": "SGD"}),
    ],
)
def test_one_step_of_both_parts(tmp_path, regressor, settings):
    """Both see the slopes of the sum of their logits, 2 (prediction - label); the linear one is 0."""
    column = tf.feature_column.numeric_column("x")
    descent = tf.compat.v1.train.GradientDescentOptimizer(0.5)
    linear = {"linear_feature_columns": [column], "linear_optimizer": descent}
    dnn = {"dnn_feature_columns": [column], "dnn_hidden_units": [4]}
    estimator = regressor(str(tmp_path), **linear, **dnn, **settings).train(input_fn)

    def before(name):
        return tf.train.load_variable(os.path.join(tmp_path, "model.ckpt-0"), f"dnn/{name}")

    hidden = np.maximum(FEATURES @ before("hiddenlayer_0/kernel"), 0.0)
    slopes = 2.0 * (hidden @ before("logits/kernel") - LABELS)
    weight = estimator.get_variable_value("linear/linear_model/x/weights").item()
    assert weight == pytest.approx(-0.5 * (slopes * FEATURES).sum(), rel=1e-4)
    bias = estimator.get_variable_value("linear/linear_model/bias_weights")
    assert bias == pytest.approx([-0.5 * slopes.sum()], rel=1e-4)
    bias = estimator.get_variable_value("dnn/logits/bias")
    assert bias == pytest.approx([-0.001 * slopes.sum()], rel=1e-4)
    assert estimator.get_variable_value("global_step") == 1
