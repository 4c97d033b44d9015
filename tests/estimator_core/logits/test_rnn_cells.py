"""Steps of the cells by hand: one unit, so that each gate is a number."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.logits.rnn_cells import CELLS, LSTMCell, unroll


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def run(name, weights, inputs, mask, return_sequences=True, units=1, is_served=True):
    """Returns the outputs of a cell with these weights."""
    with tf.Graph().as_default() as graph:
        cell = CELLS[name](np.shape(inputs)[-1], units)
        outputs = unroll(cell, tf.constant(inputs), tf.constant(mask), return_sequences, is_served)
        assert is_served or "BlockLSTM" in {operation.type for operation in graph.get_operations()}
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for variable in tf1.trainable_variables():
                variable.load(np.float32(weights[variable.op.name]), session)
            return session.run(outputs)


SIMPLE = {"kernel": [[0.5]], "recurrent_kernel": [[2.0]], "bias": [0.1]}
ONE_SEQUENCE = {"inputs": [[[1.0], [2.0]]], "mask": [[True, True]]}


def test_a_simple_rnn_adds_its_last_output_to_the_input():
    first = math.tanh(0.5 * 1 + 0.1)
    second = math.tanh(0.5 * 2 + 2 * first + 0.1)
    found = run("simple_rnn", SIMPLE, **ONE_SEQUENCE)
    assert found[0, :, 0] == pytest.approx([first, second], rel=1e-5)


def test_an_lstm_writes_and_forgets_by_its_gates():
    """The columns are the input gate, the forget gate, the candidate, the output gate."""
    weights = {
        "kernel": [[0.1, 0.2, 0.3, 0.4]],
        "recurrent_kernel": [[1.0, -1.0, 0.5, 2.0]],
        "bias": [0.01, 0.02, 0.03, 0.04],
    }
    output = memory = 0.0
    expected = []
    for x in (1.0, 2.0):
        write = sigmoid(0.1 * x + 1.0 * output + 0.01)
        forget = sigmoid(0.2 * x - 1.0 * output + 0.02)
        candidate = math.tanh(0.3 * x + 0.5 * output + 0.03)
        read = sigmoid(0.4 * x + 2.0 * output + 0.04)
        memory = forget * memory + write * candidate
        output = read * math.tanh(memory)
        expected.append(output)
    assert run("lstm", weights, **ONE_SEQUENCE)[0, :, 0] == pytest.approx(expected, rel=1e-5)
    # Two units that take no notice of each other, by the operation for all steps.
    two = {name: np.repeat(value, 2, axis=-1) for name, value in weights.items()}
    two["recurrent_kernel"] = np.kron(weights["recurrent_kernel"], np.eye(2))
    found = run("lstm", two, **ONE_SEQUENCE, units=2, is_served=False)
    assert found[0].T.tolist() == [pytest.approx(expected, rel=1e-5)] * 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("return_sequences", [True, False])
@pytest.mark.parametrize("is_served", [True, False])
def test_gradients_of_an_lstm_are_those_of_keras(is_served, return_sequences):
    random = np.random.default_rng(1)
    weights = [random.normal(size=size).astype(np.float32) for size in ((2, 16), (4, 16), 16)]
    inputs = random.normal(size=(4, 5, 2)).astype(np.float32)
    mask = np.arange(5) < np.array([[5], [0], [2], [1]])

    layer = keras.layers.LSTM(4, return_sequences=return_sequences)
    layer.build(inputs.shape)
    layer.set_weights(weights)
    given = tf.constant(inputs)
    with tf.GradientTape() as tape:
        tape.watch(given)
        outputs = layer(given, mask=tf.constant(mask))
        outputs = [outputs, *tape.gradient(outputs**2, [given, *layer.trainable_variables])]

    with tf.Graph().as_default():
        given = tf.constant(inputs)
        found = unroll(CELLS["lstm"](2, 4), given, tf.constant(mask), return_sequences, is_served)
        variables = tf1.trainable_variables()
        found = [found, *tf.gradients(found**2, [given, *variables])]
        with tf1.Session() as session:
            for variable, value in zip(variables, weights, strict=True):
                variable.load(value, session)
            found = session.run(found)
    assert np.abs(found[1][0, :4]).min() > 1e-5  # the first example has five steps
    for ours, theirs in zip(found, outputs, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-6)


def test_a_gru_updates_and_resets_by_its_gates():
    """The columns are the update gate, the reset gate, the candidate; the bias has two rows."""
    weights = {
        "kernel": [[0.1, 0.2, 0.3]],
        "recurrent_kernel": [[1.0, -1.0, 0.5]],
        "bias": [[0.01, 0.02, 0.03], [0.4, 0.5, 0.6]],
    }
    output = 0.0
    expected = []
    for x in (1.0, 2.0):
        keep = sigmoid(0.1 * x + 0.01 + 1.0 * output + 0.4)
        reset = sigmoid(0.2 * x + 0.02 - 1.0 * output + 0.5)
        output = keep * output + (1 - keep) * math.tanh(0.3 * x + 0.03 + reset * (0.5 * output + 0.6))
        expected.append(output)
    assert run("gru", weights, **ONE_SEQUENCE)[0, :, 0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("input_size", "units", "is_small"),
    [(1, 2, True), (64, 32, True), (65, 32, False), (16, 31, False), (32, 64, True), (33, 64, False)],
)
def test_which_lstm_is_small(input_size, units, is_small):
    """96 x 256 numbers are the most; more than twice as many inputs as units, and odd units, are too much."""
    kernels = [tf.zeros([size, 4 * units]) for size in (input_size, units)]
    assert LSTMCell.from_parts(*kernels, bias=tf.zeros([4 * units])).is_small is is_small


@pytest.mark.more
@pytest.mark.parametrize("return_sequences", [True, False])
def test_second_gradients_of_one_operation_are_those_of_the_loop(return_sequences, session):
    """As for a penalty of large gradients."""
    inputs = tf.constant(np.random.default_rng(2).normal(size=(3, 4, 2)), tf.float32)
    mask = tf.sequence_mask([4, 0, 2], 4)
    cell = CELLS["lstm"](2, 4)
    given = [inputs, *tf1.trainable_variables()]
    found = []
    for is_served in (True, False):
        gradients = tf.gradients(unroll(cell, inputs, mask, return_sequences, is_served) ** 3, given)
        penalty = tf.add_n([tf.reduce_sum(each**2) for each in gradients])
        found.append(tf.gradients(penalty, given))
    session.run(tf1.global_variables_initializer())
    for loop, one in zip(*session.run(found), strict=True):
        assert np.abs(loop).max() > 1e-4
        np.testing.assert_allclose(one, loop, rtol=1e-4, atol=1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("return_sequences", [True, False])
@pytest.mark.parametrize("is_served", [True, False])
def test_an_lstm_of_no_examples_has_gradients_of_zero(is_served, return_sequences, session):
    """As when a replica gets nothing of the last batch."""
    inputs = tf1.placeholder(tf.float32, [None, None, 3])
    mask = tf1.placeholder(tf.bool, [None, None])
    outputs = unroll(CELLS["lstm"](3, 4), inputs, mask, return_sequences, is_served)
    gradients = tf.gradients(outputs, tf1.trainable_variables())
    session.run(tf1.global_variables_initializer())
    feeds = {inputs: np.zeros([0, 5, 3]), mask: np.zeros([0, 5])}
    for _ in range(20):  # the former values of the memory may be zeros
        found, *of_kernels = session.run([outputs, *gradients], feeds)
        assert found.shape == ((0, 5, 4) if return_sequences else (0, 4))
        assert [np.abs(each).max() for each in of_kernels] == [0, 0, 0]


@pytest.mark.parametrize("return_sequences", [True, False])
def test_steps_that_the_mask_leaves_out_change_nothing(return_sequences):
    first, later = math.tanh(0.5 * 1 + 0.1), math.tanh(0.5 * 4 + 0.1)
    last = math.tanh(0.5 * 3 + 2 * first + 0.1)
    found = run(
        "simple_rnn",
        SIMPLE,
        [[[1.0], [9.0], [3.0]], [[9.0], [4.0], [9.0]], [[9.0], [9.0], [9.0]]],
        [[True, False, True], [False, True, False], [False, False, False]],
        return_sequences=return_sequences,
    )
    expected = np.array([[first, first, last], [0.0, later, later], [0.0, 0.0, 0.0]])
    expected = expected[..., np.newaxis] if return_sequences else expected[:, -1:]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "gates", "bias"),
    [("simple_rnn", 1, [0.0] * 3), ("lstm", 4, [0.0] * 3 + [1.0] * 3 + [0.0] * 6),
     ("gru", 3, [[0.0] * 9] * 2)],
)  # fmt: skip
def test_variables_start_as_those_of_keras(name, gates, bias, session):
    assert CELLS[name].name == name
    assert CELLS[name](2, 3).num_gates == gates
    session.run(tf1.global_variables_initializer())
    values = session.run({v.op.name: v for v in tf1.trainable_variables()})
    kernel, recurrent = values["kernel"], values["recurrent_kernel"]
    assert (kernel.shape, recurrent.shape) == ((2, 3 * gates), (3, 3 * gates))
    assert values["bias"].tolist() == bias
    # Orthogonal: the rows are of length one and at right angles to each other.
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(3), atol=1e-5)
    # Glorot uniform: between -limit and limit, the root of 6 / (rows + columns).
    assert 0 < np.abs(kernel).max() <= math.sqrt(6 / (2 + 3 * gates))
