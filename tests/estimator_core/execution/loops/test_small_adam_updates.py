"""Adam's updates of small variables are those of TensorFlow's operation, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.step_graph import StepGraph

SHAPES = {"a": [65], "b": [13, 7], "c": [20, 64], "d": [4096], "e": [1, 1001]}


def trained(shapes, gradients_of, by_copy, steps=25, dtype=tf.float32, **settings):
    """The variables after some steps, by name; and the types of the operations of the copied step."""
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        rng = np.random.default_rng(5)
        pairs = []
        for name, shape in shapes.items():
            value = rng.normal(size=shape).astype(dtype.as_numpy_dtype)
            variable = tf1.get_variable(name, initializer=value, use_resource=True)
            pairs.append((tf1.placeholder(dtype, shape), variable))
        settings = {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3} | settings
        step = tf1.train.AdamOptimizer(**settings).apply_gradients(pairs)
        types = set()
        if by_copy:
            before = len(graph.get_operations())
            (step,) = StepGraph([step]).copy([step])
            types = {operation.type for operation in graph.get_operations()[before:]}
        session.run(tf1.global_variables_initializer())
        for index in range(steps):
            session.run(step, {g: gradients_of(index, rng, g.shape.as_list()) for g, _ in pairs})
        values = {variable.name: session.run(variable) for variable in tf1.global_variables()}
    return values, types


def random_gradients(index, rng, shape):
    return rng.normal(size=shape) * 10.0 ** (index % 7 - 4)


def odd_gradients(index, rng, shape):
    values = rng.normal(size=shape)
    values.flat[index] = [0.0, -0.0, np.inf, np.nan, 1e-40, 1e30][index % 6]
    return values


def check_same(found, expected):
    assert {name: value.tobytes() for name, value in found.items()} == {
        name: value.tobytes() for name, value in expected.items()
    }


@pytest.mark.parametrize("gradients_of", [random_gradients, odd_gradients])
def test_small_variables_and_slots_are_the_same(gradients_of):
    expected, _ = trained(SHAPES, gradients_of, by_copy=False)
    found, types = trained(SHAPES, gradients_of, by_copy=True)
    check_same(found, expected)
    assert len(found) == 3 * len(SHAPES) + 2  # with two slots each, and the powers of both betas
    assert "ResourceApplyAdam" not in types
    assert "AssignSubVariableOp" in types


@pytest.mark.parametrize(
    ("shapes", "dtype"), [({"a": [64]}, tf.float32), ({"a": [4097]}, tf.float32), ({"a": [100]}, tf.float64)]
)
def test_all_else_is_left_as_it_is(shapes, dtype):
    expected, _ = trained(shapes, random_gradients, by_copy=False, dtype=dtype)
    found, types = trained(shapes, random_gradients, by_copy=True, dtype=dtype)
    check_same(found, expected)
    assert "ResourceApplyAdam" in types


def test_nesterov_is_left_as_it_is(graph):
    names = ("var", "m", "v")
    handles = {name: tf1.get_variable(name, [100], use_resource=True).handle for name in names}
    numbers = ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon")
    scalars = {name: tf.constant(0.1) for name in numbers}
    step = tf.raw_ops.ResourceApplyAdam(**handles, **scalars, grad=tf.ones([100]), use_nesterov=True)
    before = len(graph.get_operations())
    StepGraph([step]).copy([step])
    assert "ResourceApplyAdam" in {each.type for each in graph.get_operations()[before:]}
