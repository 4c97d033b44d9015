import numpy as np
import pytest
import tensorflow.compat.v1 as tf1

from estimator_core.optimizers.minimize import get_optimizer
from estimator_core.optimizers.named import optimizer_named
from tests.estimator_core.optimizers.one_vector import train


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def sparse(request):
    return request.param


@pytest.fixture
def slopes(sparse):
    return np.array([2.0, 1.0, 0.0] if sparse else [1.0, -2.0, 0.0])


def test_adam_steps_by_the_learning_rate(sparse, slopes):
    """The slope is constant, so its steps are the learning rate, but for epsilon."""
    values, names = train(lambda: "Adam", sparse=sparse)
    np.testing.assert_allclose(values, 1 - 0.001 * np.outer([1, 2, 3], np.sign(slopes)), rtol=1e-6)
    assert "training/Adam/vector/m" in names


def test_adagrad_divides_by_the_root_of_all_squares(sparse, slopes):
    values, names = train(lambda: "Adagrad", steps=2, sparse=sparse)
    # The accumulator starts at 0.1 and gains the squared slope.
    first = 1 - 0.001 * slopes / np.sqrt(0.1 + slopes**2)
    second = first - 0.001 * slopes / np.sqrt(0.1 + 2 * slopes**2)
    np.testing.assert_allclose(values, [first, second], rtol=1e-6)
    own = ("decay", "learning_rate", "vector/accumulator")
    assert names == ["vector", "global_step", *(f"training/Adagrad/{name}" for name in own)]


def test_rmsprop_divides_by_the_root_of_the_mean_square(sparse, slopes):
    values, _ = train(lambda: "RMSProp", steps=2, sparse=sparse)
    # The mean square is 0.1 g^2 after a step, 0.19 g^2 after two.
    first = 1 - 0.001 * np.sign(slopes) / np.sqrt(0.1)
    second = first - 0.001 * np.sign(slopes) / np.sqrt(0.19)
    np.testing.assert_allclose(values, [first, second], rtol=1e-5)


def test_sgd_subtracts_a_hundredth_of_the_slope(sparse, slopes):
    values, _ = train(lambda: "SGD", steps=2, sparse=sparse)
    np.testing.assert_allclose(values, [1 - 0.01 * slopes, 1 - 0.02 * slopes], rtol=1e-6)


def test_ftrl_makes_the_steps_of_the_paper(sparse, slopes):
    values, _ = train(lambda: "Ftrl", sparse=sparse)
    slopes = slopes[:2]
    # McMahan et al. 2013, algorithm 1, with learning rate 0.001 and squares that start at 0.1.
    weights, squares, z = np.ones(2), np.full(2, 0.1), np.zeros(2)
    for step in range(3):
        sigma = (np.sqrt(squares + slopes**2) - np.sqrt(squares)) / 0.001
        z += slopes - sigma * weights
        squares += slopes**2
        weights = -z * 0.001 / np.sqrt(squares)
        np.testing.assert_allclose(values[step, :2], weights, rtol=1e-4)


def test_iterations_may_be_set_to_the_global_step():
    def counted_by_the_global_step():
        optimizer = get_optimizer("Adam", 0.001)
        optimizer.iterations = tf1.train.get_or_create_global_step()
        return optimizer

    values, names = train(counted_by_the_global_step)
    assert "training/Adam/iter" not in names
    np.testing.assert_allclose(values, train(lambda: "Adam")[0])


def test_a_name_stands_for_its_optimizer_and_an_unknown_one_lists_all_the_nearest_first():
    choices = {"Adagrad": 1, "Adam": 2, "Ftrl": 3, "SGD": 4}
    assert optimizer_named("SGD", choices) == 4
    words = r"one of \['Adam', 'Adagrad', .*Received: optimizer='adam'"
    with pytest.raises(ValueError, match=words) as error:
        optimizer_named("adam", choices)
    assert all(repr(name) in str(error.value) for name in choices)
