import pytest
import tensorflow as tf

from estimator_core import v1

X = tf.feature_column.numeric_column("x")


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0], [3.0]]}, [[0.0], [1.0], [1.0]]))


@pytest.mark.parametrize(
    ("reduction", "weight", "bias"),
    # From 0 the slopes of the losses are -2 label x and -2 label; the learning rate of a name is 0.2.
    [("weighted_sum", 2.0, 0.8), ("weighted_mean", 2.0 / 3, 0.8 / 3)],
)
def test_one_step_of_a_regressor(tmp_path, reduction, weight, bias):
    estimator = v1.LinearRegressor(
        [X], str(tmp_path), optimizer="SGD", loss_reduction=reduction
    ).train(input_fn)
    assert estimator.get_variable_value("linear/linear_model/x/weights").item() == pytest.approx(
        weight
    )
    assert estimator.get_variable_value("linear/linear_model/bias_weights") == pytest.approx([bias])


def test_one_step_of_a_classifier(tmp_path):
    """The slopes are (0.5 - label) x: 0.5, -1 and -1.5."""
    estimator = v1.LinearClassifier([X], str(tmp_path), optimizer="SGD").train(input_fn)
    assert estimator.get_variable_value("linear/linear_model/x/weights").item() == pytest.approx(
        0.4
    )
