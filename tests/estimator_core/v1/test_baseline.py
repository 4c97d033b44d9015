import pytest
import tensorflow as tf

from estimator_core import v1


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0]] * 4}, [[0], [1], [1], [1]]))


def test_a_regressor_takes_the_sum_of_the_slopes(tmp_path):
    """From the bias 0 the slopes are 0 and three times -2; the learning rate of a name is 0.3."""
    estimator = v1.BaselineRegressor(str(tmp_path), optimizer="SGD").train(input_fn)
    assert estimator.get_variable_value("baseline/bias") == pytest.approx([1.8])


def test_a_classifier_takes_the_sum_of_the_slopes(tmp_path):
    """From the bias 0 each slope is 0.5 - label: 0.5 and three times -0.5."""
    estimator = v1.BaselineClassifier(str(tmp_path), optimizer="SGD").train(input_fn)
    assert estimator.get_variable_value("baseline/bias") == pytest.approx([0.3])
