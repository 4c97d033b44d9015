import pytest

from estimator_core import v1
from tests.estimator_core.programs import batch_of

input_fn = batch_of({"x": [[1.0]] * 4}, [[0], [1], [1], [1]])


# From the bias 0: a regressor's slopes are 0 and three times -2, a classifier's 0.5 and three times -0.5.
@pytest.mark.parametrize(("make", "bias"), [(v1.BaselineRegressor, 1.8), (v1.BaselineClassifier, 0.3)])
def test_it_takes_the_sum_of_the_slopes(tmp_path, make, bias):
    """The learning rate of a name is 0.3."""
    estimator = make(str(tmp_path), optimizer="SGD").train(input_fn)
    assert estimator.get_variable_value("baseline/bias") == pytest.approx([bias])
