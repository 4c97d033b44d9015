import numpy as np
import pytest
import tensorflow as tf

from estimator_core.optimizers.clipped import ClippedOptimizer
from estimator_core.optimizers.minimize import get_optimizer, minimize

tf1 = tf.compat.v1


def after_one_step(build_loss, optimizer="SGD", shape=(2,)):
    """Returns a variable that starts at zeros after a step with learning rate 1 and clipnorm 5."""
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", shape, initializer=tf1.zeros_initializer())
        other = tf1.get_variable("other", [], initializer=tf1.zeros_initializer())
        clipped = ClippedOptimizer(get_optimizer(optimizer, 1.0, step), 5.0)
        train_op = minimize(clipped, build_loss(weight) + 2.0 * other)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(train_op)
            names = [variable.op.name for variable in tf1.global_variables()]
            return session.run(weight), session.run(other), session.run(step), names


def test_a_gradient_above_the_norm_is_scaled_down_for_each_variable():
    weight, other, step, _ = after_one_step(lambda w: 30.0 * w[0] + 40.0 * w[1])
    # [30, 40] has the norm 50, and becomes [3, 4]; the other variable's gradient stays 2.
    np.testing.assert_allclose(weight, [-3.0, -4.0], rtol=1e-6)
    assert other == pytest.approx(-2.0)
    assert step == 1


def test_a_gradient_below_the_norm_stays():
    weight, _, _, _ = after_one_step(lambda w: 0.3 * w[0] + 0.4 * w[1])
    np.testing.assert_allclose(weight, [-0.3, -0.4], rtol=1e-6)


def test_sparse_gradients_are_clipped_before_equal_rows_are_summed():
    # Rows 1, 1, 0 with the gradients 30, 30 and 0: the norm of these is 30 sqrt(2), whereas that of
    # their sum is 60. Row 1 moves by 2 * 30 * 5 / (30 sqrt(2)) = 10 / sqrt(2).
    weight, _, _, _ = after_one_step(
        lambda w: tf.reduce_sum(tf.gather(w, [1, 1, 0]) * [[30.0], [30.0], [0.0]]), shape=(3, 1)
    )
    np.testing.assert_allclose(weight, [[0.0], [-10.0 / np.sqrt(2.0)], [0.0]], rtol=1e-6)


def test_variables_of_the_optimizer_have_its_names():
    *_, names = after_one_step(lambda w: tf.reduce_sum(w), optimizer="Adagrad")
    assert sorted(names) == [
        "global_step",
        "other",
        "training/Adagrad/decay",
        "training/Adagrad/learning_rate",
        "training/Adagrad/other/accumulator",
        "training/Adagrad/weight/accumulator",
        "weight",
    ]


def test_slots_are_those_of_the_optimizer():
    with tf.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", [2])
        clipped = ClippedOptimizer(get_optimizer("Adagrad", 1.0, step), 5.0)
        minimize(clipped, tf.reduce_sum(weight))
        assert clipped.get_slot_names() == ["accumulator"]
        slot = clipped.get_slot(weight, "accumulator")
        assert slot.op.name == "training/Adagrad/weight/accumulator"
