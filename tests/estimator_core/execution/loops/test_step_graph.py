"""The part of a graph that a step runs; a copy of it does the same."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.step_graph import StepGraph

pytestmark = pytest.mark.usefixtures("graph")


def names(operations):
    return {operation.name for operation in operations}


def test_it_has_what_the_step_needs_and_no_more():
    weight = tf1.get_variable("weight", initializer=1.0)
    tf.identity(3.0, name="unused")
    with tf.control_dependencies([tf.identity(5.0, name="before")]):
        target = weight.assign_add(tf.constant(2.0, name="two"), name="add")
    found = StepGraph([target.op if hasattr(target, "op") else target])
    assert {"two", "before"} <= names(found.operations)
    assert "unused" not in names(found.operations)
    assert not any("Initializer" in name for name in names(found.operations))
    assert names(found.outside) == {"weight"}


def test_a_copy_uses_the_variables_of_the_graph():
    weight = tf1.get_variable("weight", initializer=1.0)
    fed = tf1.placeholder(tf.float32, [], "fed")
    total = tf.identity(weight.assign_add(fed))
    (copied,) = StepGraph([total.op]).copy([total])
    assert copied.name != total.name
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(copied, {fed: 2.0}) == 3.0
        assert session.run(total, {fed: 5.0}) == 8.0
        assert session.run(copied, {fed: 1.0}) == 9.0


def test_operations_keep_their_devices():
    with tf.device("/cpu:0"):
        value = tf.identity(3.0)
    (copied,) = StepGraph([value.op]).copy([value])
    assert copied.device == value.device


def on_two_devices():
    with tf.device("/cpu:0"):
        value = tf.identity(1.0)
    with tf.device("/cpu:1"):
        return tf.identity(value)


@tf.function
def draws(seed):
    return tf.random.uniform([], seed=seed)


def in_a_branch():
    return tf.cond(tf.constant(True), lambda: tf1.random_uniform([], seed=4), lambda: tf.constant(0.0))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: tf1.random_uniform([], seed=2), "RandomUniform"),
        (lambda: tf1.random_normal([], seed=2), "RandomStandardNormal"),
        (lambda: draws(3), "RandomUniform"),
        (in_a_branch, "RandomUniform"),
        (lambda: tf.numpy_function(lambda: 1.0, [], tf.float64), "PyFunc"),
        (lambda: tf1.get_variable("old", initializer=1.0, use_resource=False) + 1, "TensorFlow 1"),
        (lambda: tf1.Print(1.0, [1.0], first_n=2), "Print"),
        (on_two_devices, "several devices: /device:CPU:0, /device:CPU:1"),
        (lambda: tf1.FIFOQueue(3, [tf.float32]).dequeue(), "FIFOQueue"),
        (
            lambda: tf.raw_ops.Switch(data=tf.constant(1.0), pred=tf.constant(True))[1],
            "loop or condition of TensorFlow 1",
        ),
    ],
)
def test_what_a_copy_would_do_otherwise_is_named(make, reason):
    assert reason in StepGraph([make().op]).why_not_copied()


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf1.random_uniform([]),
        lambda: tf1.Print(1.0, [1.0]),
        lambda: draws(None),
        lambda: tf.random.stateless_uniform([], [1, 2]),
        lambda: tf1.get_variable("weight", initializer=1.0) + 1,
        lambda: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0).lookup(
            tf.constant(["a"])
        ),
        lambda: tf1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next(),
        lambda: tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(0.0)),
    ],
)
def test_what_a_copy_does_as_well_is_found(make):
    assert StepGraph([make().op]).why_not_copied() is None


def test_a_copy_that_would_cost_more_than_it_saves_is_not_made(monkeypatch):
    value = tf.constant(1.0)
    for _ in range(12):
        value += 1.0
    assert StepGraph([value.op]).why_not_copied() is None
    monkeypatch.setattr("estimator_core.execution.loops.step_graph._MOST_OPERATIONS", 20)
    assert "25 operations" in StepGraph([value.op]).why_not_copied()
