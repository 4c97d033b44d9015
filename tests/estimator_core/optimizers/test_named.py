import numpy as np
import pytest
import tensorflow as tf

from estimator_core.optimizers.minimize import get_optimizer
from tests.estimator_core.optimizers.one_vector import train

tf1 = tf.compat.v1


# The slope is constant, so Adam's steps are the learning rate, but for epsilon.
@pytest.mark.parametrize("sparse", [False, True])
def test_adam_steps_by_the_learning_rate(sparse):
    values, names = train(lambda: "Adam", sparse=sparse)
    signs = [1, 1, 0] if sparse else [1, -1, 0]
    expected = 1 - 0.001 * np.outer([1, 2, 3], signs)
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert "training/Adam/vector/m" in names


@pytest.mark.parametrize("sparse", [False, True])
def test_adagrad_divides_by_the_root_of_all_squares(sparse):
    values, names = train(lambda: "Adagrad", steps=2, sparse=sparse)
    slopes = np.array([2, 1, 0] if sparse else [1, -2, 0])
    # The accumulator starts at 0.1 and gains the squared slope.
    first = 1 - 0.001 * slopes / np.sqrt(0.1 + slopes**2)
    second = first - 0.001 * slopes / np.sqrt(0.1 + 2 * slopes**2)
    np.testing.assert_allclose(values, [first, second], rtol=1e-6)
    assert names == [
        "vector",
        "global_step",
        "training/Adagrad/decay",
        "training/Adagrad/learning_rate",
        "training/Adagrad/vector/accumulator",
    ]


@pytest.mark.parametrize("sparse", [False, True])
def test_rmsprop_divides_by_the_root_of_the_mean_square(sparse):
    values, _ = train(lambda: "RMSProp", steps=2, sparse=sparse)
    slopes = np.array([2, 1, 0] if sparse else [1, -2, 0])
    # The mean square is 0.1 g^2 after a step, 0.19 g^2 after two.
    first = 1 - 0.001 * np.sign(slopes) / np.sqrt(0.1)
    second = first - 0.001 * np.sign(slopes) / np.sqrt(0.19)
    np.testing.assert_allclose(values, [first, second], rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_sgd_subtracts_a_hundredth_of_the_slope(sparse):
    values, _ = train(lambda: "SGD", steps=2, sparse=sparse)
    slopes = np.array([2, 1, 0] if sparse else [1, -2, 0])
    np.testing.assert_allclose(values, [1 - 0.01 * slopes, 1 - 0.02 * slopes], rtol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_ftrl_makes_the_steps_of_the_paper(sparse):
    values, _ = train(lambda: "Ftrl", sparse=sparse)
    slopes = np.array([2.0, 1.0] if sparse else [1.0, -2.0])
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
