import pytest
import tensorflow as tf

import estimator_core as est

X = tf.feature_column.numeric_column("x")


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0], [3.0]]}, [[0.0], [1.0], [1.0]]))


@pytest.mark.parametrize(
    ("reduction", "weight", "bias"),
    # From 0 the slopes of the losses are -2 label x and -2 label; the learning rate of a name is 0.2.
    [("sum", 2.0, 0.8), ("sum_over_batch_size", 2.0 / 3, 0.8 / 3)],
)
def test_one_step_of_a_regressor(tmp_path, reduction, weight, bias):
    estimator = est.LinearRegressor(
        [X], str(tmp_path), optimizer="SGD", loss_reduction=reduction
    ).train(input_fn)
    assert estimator.get_variable_value("linear/linear_model/x/weights").item() == pytest.approx(
        weight
    )
    assert estimator.get_variable_value("linear/linear_model/bias_weights") == pytest.approx([bias])


def test_one_step_of_a_classifier(tmp_path):
    """The slopes are (0.5 - label) x: 0.5, -1 and -1.5; the loss is their mean."""
    estimator = est.LinearClassifier([X], str(tmp_path), optimizer="SGD").train(input_fn)
    assert estimator.get_variable_value("linear/linear_model/x/weights").item() == pytest.approx(
        0.4 / 3
    )
