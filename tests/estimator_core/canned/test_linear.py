import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import v1

X = tf.feature_column.numeric_column("x")


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0], [3.0]]}, [[0.0], [1.0], [1.0]]))


# From 0 the slopes of the losses are -2 label x and -2 label; the learning rate of a name is 0.2.
@pytest.mark.parametrize(
    ("regressor", "reduction", "share"),
    [
        (est.LinearRegressor, "sum", 1.0),
        (est.LinearRegressor, "sum_over_batch_size", 1 / 3),
        (v1.LinearRegressor, "weighted_sum", 1.0),
        (v1.LinearRegressor, "weighted_mean", 1 / 3),
    ],
)
def test_one_step_of_a_regressor(tmp_path, regressor, reduction, share):
    estimator = regressor([X], tmp_path, optimizer="SGD", loss_reduction=reduction).train(input_fn)
    weight = estimator.get_variable_value("linear/linear_model/x/weights").item()
    assert weight == pytest.approx(2.0 * share)
    bias = estimator.get_variable_value("linear/linear_model/bias_weights")
    assert bias == pytest.approx([0.8 * share])


@pytest.mark.parametrize(
    ("classifier", "expected"), [(est.LinearClassifier, 0.4 / 3), (v1.LinearClassifier, 0.4)]
)
def test_one_step_of_a_classifier(tmp_path, classifier, expected):
    """The slopes are (0.5 - label) x: 0.5, -1 and -1.5; the loss is their mean, and in v1 the sum."""
    estimator = classifier([X], tmp_path, optimizer="SGD").train(input_fn)
    weight = estimator.get_variable_value("linear/linear_model/x/weights").item()
    assert weight == pytest.approx(expected)
