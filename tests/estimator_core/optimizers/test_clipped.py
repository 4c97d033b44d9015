import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.optimizers.clipped import ClippedOptimizer
from estimator_core.optimizers.minimize import get_optimizer, minimize
from tests.estimator_core.programs import zeros


def after_one_step(build_loss, optimizer="SGD", shape=(2,)):
    """Returns a variable that starts at zeros after a step with learning rate 1 and clipnorm 5."""
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        weight, other = zeros("weight", shape), zeros("other")
        clipped = ClippedOptimizer(get_optimizer(optimizer, 1.0, step), 5.0)
        train_op = minimize(clipped, build_loss(weight) + 2.0 * other)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(train_op)
            names = [variable.op.name for variable in tf1.global_variables()]
            return session.run(weight), session.run(other), session.run(step), names


@pytest.mark.parametrize(
    ("slopes", "moved"),
    [([30.0, 40.0], [-3.0, -4.0]), ([0.3, 0.4], [-0.3, -0.4])],
    ids=["above the norm: of 50, to [3, 4]", "below the norm"],
)
def test_the_gradient_of_each_variable_is_scaled_down_to_the_norm(slopes, moved):
    weight, other, step, _ = after_one_step(lambda w: slopes[0] * w[0] + slopes[1] * w[1])
    np.testing.assert_allclose(weight, moved, rtol=1e-6)
    assert other == pytest.approx(-2.0)  # its own gradient is 2
    assert step == 1


def test_sparse_gradients_are_clipped_before_equal_rows_are_summed():
    # Rows 1, 1, 0 with the gradients 30, 30 and 0: the norm of these is 30 sqrt(2), whereas that of
    # their sum is 60. Row 1 moves by 2 * 30 * 5 / (30 sqrt(2)) = 10 / sqrt(2).
    weight, _, _, _ = after_one_step(
        lambda w: tf.reduce_sum(tf.gather(w, [1, 1, 0]) * [[30.0], [30.0], [0.0]]), shape=(3, 1)
    )
    np.testing.assert_allclose(weight, [[0.0], [-10.0 / np.sqrt(2.0)], [0.0]], rtol=1e-6)


def test_variables_and_slots_of_the_optimizer_have_its_names():
    *_, names = after_one_step(lambda w: tf.reduce_sum(w), optimizer="Adagrad")
    own = ("decay", "learning_rate", "other/accumulator", "weight/accumulator")
    assert sorted(names) == ["global_step", "other", *(f"training/Adagrad/{name}" for name in own), "weight"]
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", [2])
        clipped = ClippedOptimizer(get_optimizer("Adagrad", 1.0, step), 5.0)
        minimize(clipped, tf.reduce_sum(weight))
        assert clipped.get_slot_names() == ["accumulator"]
        assert clipped.get_slot(weight, "accumulator").op.name == "training/Adagrad/weight/accumulator"
