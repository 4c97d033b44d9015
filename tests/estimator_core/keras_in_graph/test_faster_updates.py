"""Updates by Keras 3's Adam and Ftrl take fewer operations, and are Keras's own to rounding."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.keras_in_graph.faster_updates import are_different
from estimator_core.optimizers.minimize import OptimizedPart, minimize_parts

SHAPES = {"tiny": [3], "small": [30, 9], "large": [90, 60], "table": [40, 5]}
STEPS = 15
_RNG = np.random.default_rng(2)
VALUES = {name: _RNG.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
FACTORS = {name: _RNG.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
IDS = {"different": [3, 7, 39, 8], "twice": [3, 7, 3, 39, 7, 3]}


def loss_of(variables, step, ids):
    """A loss whose gradients change with the step; that of the table is sparse."""
    rows = (tf.constant(IDS[ids]) + tf.cast(step, tf.int32)) % 40
    if ids == "different":
        rows, _ = tf.unique(rows)  # so that it is known
    total = tf.reduce_sum(tf.square(tf.gather(variables["table"], rows) - 3.0))
    for name in ("tiny", "small", "large"):
        total += tf.reduce_sum(tf.square(variables[name] - FACTORS[name]))
    return total * (1.0 + tf.cast(step, tf.float32) % 4)


def by_keras(make_optimizer, ids):
    """The variables after some steps of eager Keras."""
    variables = {name: keras.Variable(value, name=name) for name, value in VALUES.items()}
    optimizer = make_optimizer()
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            loss = loss_of({name: each.value for name, each in variables.items()}, step, ids)
        gradients = tape.gradient(loss, [each.value for each in variables.values()])
        optimizer.apply(gradients, list(variables.values()))
    return {name: each.numpy() for name, each in variables.items()}


def by_estimator(make_optimizer, ids):
    """The same by `minimize_parts`; and the number of operations of each type in its functions."""
    optimizer = make_optimizer()
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        variables = {
            name: tf1.get_variable(name, initializer=value, use_resource=True)
            for name, value in VALUES.items()
        }
        loss = loss_of(variables, tf.convert_to_tensor(tf1.train.get_or_create_global_step()), ids)
        train_op = minimize_parts(loss, [OptimizedPart(optimizer, list(variables.values()))])
        session.run(tf1.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train_op)
        functions = graph.as_graph_def().library.function
        types = collections.Counter(node.op for each in functions for node in each.node_def)
        return session.run(variables), types


class OwnAdam(keras.optimizers.Adam):
    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate * 3)


AdamW = keras.optimizers.AdamW
AVERAGES = {"use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 4}


FASTER = {
    "adam": lambda: keras.optimizers.Adam(0.05),
    "adam of other settings": lambda: keras.optimizers.Adam(0.03, 0.7, 0.95, 1e-3),
    "adam with weight decay and clipping": lambda: AdamW(0.05, weight_decay=0.1, global_clipnorm=2.0),
    "adam with a schedule and averages": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5), **AVERAGES
    ),
    "adam that adds up gradients": lambda: keras.optimizers.Adam(0.05, gradient_accumulation_steps=3),
    "ftrl": lambda: keras.optimizers.Ftrl(0.05),
    "ftrl of other settings": lambda: keras.optimizers.Ftrl(0.3, -0.4, 0.3, 0.2, 0.1),
}
OTHERS = {
    "amsgrad": lambda: keras.optimizers.Adam(0.05, amsgrad=True),
    "a class of the user's": lambda: OwnAdam(0.02),
    "ftrl with beta": lambda: keras.optimizers.Ftrl(0.05, beta=0.3),
    "ftrl with shrinkage": lambda: keras.optimizers.Ftrl(0.05, l2_shrinkage_regularization_strength=0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.05),
    "sgd": lambda: keras.optimizers.SGD(0.01, momentum=0.9),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ids", sorted(IDS))
@pytest.mark.parametrize("name", [*FASTER, *OTHERS])
def test_the_variables_are_those_of_keras(name, ids):
    make_optimizer = {**FASTER, **OTHERS}[name]
    expected = by_keras(make_optimizer, ids)
    found, types = by_estimator(make_optimizer, ids)
    for variable, value in expected.items():
        np.testing.assert_allclose(found[variable], value, rtol=2e-6, atol=1e-6, err_msg=variable)
        assert np.abs(value - VALUES[variable]).max() > 0.05
    if name.startswith("ftrl") and name in FASTER:
        assert types["ResourceApplyFtrl"] == (4 if ids == "different" else 3)
    else:
        assert "ResourceApplyFtrl" not in types


def test_adam_has_few_operations_for_a_variable():
    """Values that are the same for all variables are computed once."""
    _, types = by_estimator(lambda: keras.optimizers.Adam(0.05), "different")
    assert (types["Pow"], types["Sqrt"], types["Square"]) == (2, 5, 4)
    _, types = by_estimator(lambda: keras.optimizers.Adam(0.05, amsgrad=True), "different")
    assert types["Pow"] == 8


@pytest.mark.more
def test_the_optimizer_has_its_own_way_again():
    optimizer = keras.optimizers.Adam(0.05)
    by_estimator(lambda: optimizer, "twice")
    assert "update_step" not in vars(optimizer)
    expected = by_keras(lambda: keras.optimizers.Adam(0.05), "twice")["small"]
    np.testing.assert_allclose(by_keras(lambda: optimizer, "twice")["small"], expected, rtol=1e-6)


@pytest.mark.parametrize("optimizer_class", [keras.optimizers.Adam, keras.optimizers.Ftrl])
def test_float64_has_all_its_digits(optimizer_class):
    value = VALUES["small"].astype(np.float64)
    expected = keras.Variable(value, dtype="float64")
    eager = optimizer_class(0.05)
    for _ in range(STEPS):
        eager.apply([expected.value * 2.0], [expected])
    optimizer = optimizer_class(0.05)
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("small", initializer=value, use_resource=True)
        tf1.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(variable))
        train_op = minimize_parts(loss, [OptimizedPart(optimizer, [variable])])
        session.run(tf1.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train_op)
        found = session.run(variable)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-13)


def test_an_update_step_of_the_users_own_is_called(session):
    variable = tf1.get_variable("x", initializer=1.0, use_resource=True)
    made = keras.optimizers.Adam(0.05)
    update_step = lambda gradient, variable, learning_rate: variable.assign_sub(gradient * 0.25)  # noqa: E731
    vars(made)["update_step"] = update_step
    tf1.train.get_or_create_global_step()
    train_op = minimize_parts(variable * 2.0, [OptimizedPart(made, [variable])])
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run(variable) == 0.5
    assert vars(made)["update_step"] is update_step


def test_the_values_of_unique_are_different_and_its_positions_are_not(graph):
    values, positions = tf.unique(tf.constant([4, 4, 2]))
    assert are_different(values)
    assert are_different(tf.reshape(tf.identity(values), [-1]))
    assert not are_different(positions)
    assert not are_different(values + 1)
    assert not are_different(tf.constant([1, 1]))


def test_the_gradient_of_a_lookup_by_different_ids(graph):
    table = tf1.get_variable("table", [9, 2], use_resource=True)
    ids, positions = tf.unique(tf.constant([4, 4, 2]))
    (known,) = tf.gradients(tf.gather(table, ids), [table])
    (unknown,) = tf.gradients(tf.gather(table, positions), [table])
    assert are_different(known.indices)
    assert not are_different(unknown.indices)
