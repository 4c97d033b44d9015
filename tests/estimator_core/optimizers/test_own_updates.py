"""Recognizes updates of the user's own; test_minimize.py has the calls."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.optimizers import minimize
from estimator_core.optimizers.named import Adam


class Own(tf1.train.GradientDescentOptimizer):
    """Has its own way to minimize."""

    def minimize(self, *args, **kwargs):
        return tf.no_op()


def test_methods_of_libraries_are_not_the_users_own():
    plain = tf1.train.AdamOptimizer()
    for optimizer in (plain, Adam(), tf1.tpu.CrossShardOptimizer(plain)):
        assert not minimize.has_own_updates(optimizer)
        assert not minimize.has_own(optimizer, "apply_gradients")
    assert minimize.has_own_updates(Own(0.1))
    plain.minimize = lambda *args, **kwargs: tf.no_op()
    assert minimize.has_own_updates(plain)
    assert not minimize.has_own(plain, "unknown")


def test_in_replicas_gradients_are_added_up_before_they_are_applied():
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with strategy.scope():
        assert not minimize.has_own_updates(Own(0.1))


def in_function(value):
    return tf.function(lambda: tf.cast(value(), tf.float32))()


def in_condition(value):
    condition = tf1.placeholder_with_default(True, [])
    return tf.cond(condition, lambda: tf.cast(value(), tf.float32), lambda: 0.0)


def in_old_condition(value):
    tf1.disable_control_flow_v2()
    try:
        return in_condition(value)
    finally:
        tf1.enable_control_flow_v2()


def directly(value):
    return value()


@pytest.mark.parametrize(
    ("call", "use_resource"),
    [
        (directly, True),
        (directly, False),
        (in_function, True),
        (in_condition, True),
        (in_old_condition, True),
        (in_old_condition, False),
    ],
)
def test_reads_of_a_variable_do_not_count_as_updates(call, use_resource, graph):
    step = tf1.get_variable("step", [], tf.int64, use_resource=use_resource)
    before = minimize.find_updates(step)
    call(step.read_value)
    assert minimize.find_updates(step) == before
    call(lambda: tf.identity(tf1.assign_add(step, 1)))
    assert len(minimize.find_updates(step) - before) == 1
