"""Updates of the rows of embedding tables, against optimizers of TensorFlow 1 or by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.tpu.table_optimizers import row_optimizer, update_rows
from tests.estimator_core.programs import assert_same

embedding = tf.tpu.experimental.embedding

START = np.arange(8, dtype=np.float32).reshape(4, 2) - 3.5
# Row 1 is looked up twice, row 2 never.
LOOKUPS = np.array([1, 0, 1, 3])
VALUES = np.array([[1.0, -2.0], [0.5, 0.25], [3.0, 1.0], [-1.0, 0.125]], np.float32)
GRADIENT = np.array([[0.5, 0.25], [4.0, -1.0], [0.0, 0.0], [-1.0, 0.125]], np.float32)


def updated(make_update, steps=3):
    """The table and its slot variables after some steps."""
    with tf.Graph().as_default(), tf1.Session() as session:
        update = make_update(tf1.get_variable("table", initializer=START, use_resource=True))
        session.run(tf1.global_variables_initializer())
        for _ in range(steps):
            session.run(update)
        return session.run({v.op.name: v for v in tf1.global_variables()})


def run(parameters, steps=3, rate=0.5, is_dense=False, **arguments):
    def make_update(table):
        gradient = tf.constant(GRADIENT)
        if not is_dense:
            gradient = tf.IndexedSlices(tf.constant(VALUES), tf.constant(LOOKUPS), [4, 2])
        return update_rows(table, gradient, parameters, tf.constant(rate), **arguments)

    return updated(make_update, steps)


def with_tensorflow(optimizer):
    """The same table trained by an optimizer of TensorFlow 1 that gets each row's gradient once."""

    def make_update(table):
        rows = tf.constant([0, 1, 3])
        slices = tf.IndexedSlices(tf.gather(GRADIENT, rows), rows, [4, 2])
        return optimizer().apply_gradients([(slices, table)])

    return updated(make_update)


@pytest.mark.parametrize(
    ("parameters", "optimizer"),
    [
        (embedding.SGD(9.0), lambda: tf1.train.GradientDescentOptimizer(0.5)),
        (embedding.Adagrad(9.0, 0.25), lambda: tf1.train.AdagradOptimizer(0.5, 0.25)),
        (embedding.FTRL(9.0), lambda: tf1.train.FtrlOptimizer(0.5)),
        (
            embedding.FTRL(9.0, -0.75, 0.5, 0.25, initial_accumulator_value=0.5),
            lambda: tf1.train.FtrlOptimizer(0.5, -0.75, 0.5, 0.5, 0.25),
        ),
        (embedding.FTRL(9.0, beta=0.75), lambda: tf1.train.FtrlOptimizer(0.5, beta=0.75)),
    ],
)
def test_as_tensorflow_does(parameters, optimizer):
    found = run(parameters)
    # Slots have the names that TensorFlow gives them.
    assert_same(found, with_tensorflow(optimizer), rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(found["table"][2], START[2])  # nobody looked it up


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_adam_makes_its_steps_without_bias_correction(inside, lazy, is_dense):
    """Without a correction of the bias. Row 2 is never looked up: lazy or not, it has gradients of 0."""
    parameters = embedding.Adam(
        9.0, beta_1=0.5, beta_2=0.75, epsilon=0.25, lazy_adam=lazy, sum_inside_sqrt=inside
    )
    found = run(parameters, is_dense=is_dense)
    table, mean, square = START.astype(np.float64), np.zeros([4, 2]), np.zeros([4, 2])
    for _ in range(3):
        mean = 0.5 * mean + 0.5 * GRADIENT
        square = 0.75 * square + 0.25 * GRADIENT**2
        divisor = np.sqrt(square + 0.0625) if inside else np.sqrt(square) + 0.25
        table = table - 0.5 * mean / divisor
    assert_same(found, {"table": table, "table/Adam/m": mean, "table/Adam/v": square}, rtol=1e-6)


def test_lazy_adam_leaves_rows_alone_that_are_not_looked_up():
    """In the second step only row 0 is looked up: row 1 moves on by its averages, unless Adam is lazy."""
    tables = []
    for lazy in (True, False):
        with tf.Graph().as_default(), tf1.Session() as session:
            table = tf1.get_variable("table", initializer=START, use_resource=True)
            row = tf1.placeholder(tf.int64, [1])
            gradient = tf.IndexedSlices(tf.ones([1, 2]), row, [4, 2])
            parameters = embedding.Adam(beta_1=0.5, beta_2=0.75, epsilon=0.25, lazy_adam=lazy)
            update = update_rows(table, gradient, parameters, 0.5)
            session.run(tf1.global_variables_initializer())
            session.run(update, {row: [1]})
            session.run(update, {row: [0]})
            tables.append(session.run(table))
    first = 0.5 * 0.5 / np.sqrt(0.25 + 0.0625)
    second = 0.5 * 0.25 / np.sqrt(0.1875 + 0.0625)
    np.testing.assert_allclose(tables[0][1], START[1] - first, rtol=1e-6)
    np.testing.assert_allclose(tables[1][1], START[1] - first - second, rtol=1e-6)
    np.testing.assert_array_equal(tables[0][2:], tables[1][2:])


def test_gradients_of_a_row_and_weights_are_clipped():
    # The gradients when they are added up, and the weights where they are updated.
    clipped = START - 0.5 * np.clip(GRADIENT, -0.5, 2.0)
    np.testing.assert_allclose(run(embedding.SGD(clipvalue=(-0.5, 2.0)), steps=1)["table"], clipped)
    found = run(embedding.SGD(), steps=1, clipping_limit=0.75)
    np.testing.assert_allclose(found["table"], START - 0.5 * np.clip(GRADIENT, -0.75, 0.75))
    found = run(embedding.SGD(clip_weight_min=-2.0, clip_weight_max=0.5), steps=1)["table"]
    np.testing.assert_allclose(found[[0, 1, 3]], np.clip(START - 0.5 * GRADIENT, -2.0, 0.5)[[0, 1, 3]])
    np.testing.assert_array_equal(found[2], START[2])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (embedding.AdagradMomentum(), r"must be one of .*'SGD', 'Adagrad', 'Adam', 'FTRL'"),
        (embedding.SGD(weight_decay_factor=0.5), "weight_decay_factor=0.5"),
        (embedding.FTRL(multiply_linear_by_learning_rate=True), "multiply_linear_by_learning_rate=True"),
        (embedding.FTRL(allow_zero_accumulator=True), "allow_zero_accumulator=True"),
        (embedding.Adagrad(use_gradient_accumulation=False), "use_gradient_accumulation=False"),
        (embedding.Adam(slot_variable_creation_fn=lambda *_: {}), "slot_variable_creation_fn=<function"),
    ],
)
def test_what_shards_do_not_have(parameters, message):
    with pytest.raises(RuntimeError, match=message):
        row_optimizer(parameters)
