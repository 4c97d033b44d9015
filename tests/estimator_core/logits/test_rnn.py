import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.logits.rnn import rnn_logit_fn_builder

fc = tf.feature_column
VALUE = fc.sequence_numeric_column("value")
ROWS = ([1.0, 2.0], [], [3.0])


def features():
    """Two time steps, none, one."""
    return {"value": tf.ragged.constant(ROWS), "size": tf.constant([10.0, 20.0, 30.0])}


def run(assign=None, mode="infer", make_features=features, units=1, columns=(VALUE,), **arguments):
    """Returns the logits, the mask and all variables by name, of which some are assigned before."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(3)
        output = rnn_logit_fn_builder(units, list(columns), **arguments)(make_features(), mode)
        variables = {v.op.name: v for v in tf1.global_variables()}
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        for name, value in (assign or {}).items():
            variables[name].load(np.float32(value), session)
        (logits, mask), values = session.run((output, variables))
        return logits, mask, values


SIMPLE = {
    "rnn_model/rnn/simple_rnn_cell/kernel": [[0.5]],
    "rnn_model/rnn/simple_rnn_cell/recurrent_kernel": [[2.0]],
    "rnn_model/rnn/simple_rnn_cell/bias": [0.1],
    "rnn_model/logits/kernel": [[10.0]],
    "rnn_model/logits/bias": [1.0],
}
FIRST = np.tanh(0.5 * 1.0 + 0.1)
SECOND = np.tanh(0.5 * 2.0 + 2.0 * FIRST + 0.1)
THIRD = np.tanh(0.5 * 3.0 + 0.1)


def test_the_last_valid_step_gives_the_logits():
    logits, mask, values = run(SIMPLE, rnn_units=[1])
    assert set(values) == set(SIMPLE)
    assert mask.tolist() == [[True, True], [False, False], [True, False]]
    # An example without any step has the initial state, zeros: the bias remains.
    np.testing.assert_allclose(logits, [[10 * SECOND + 1], [1], [10 * THIRD + 1]], rtol=1e-5)


def test_sequences_go_on_with_the_last_valid_output():
    logits, _, _ = run(SIMPLE, rnn_units=[1], return_sequences=True)
    expected = [[FIRST, SECOND], [0.0, 0.0], [THIRD, THIRD]]
    np.testing.assert_allclose(logits, 10 * np.array(expected)[..., np.newaxis] + 1, rtol=1e-5)


def test_the_context_comes_after_the_values_of_each_step():
    assign = {**SIMPLE, "rnn_model/rnn/simple_rnn_cell/kernel": [[0.5], [0.01]]}
    logits, _, _ = run(assign, rnn_units=[1], context_feature_columns=[fc.numeric_column("size")])
    second = np.tanh(0.5 * 2.0 + 0.01 * 10 + 2.0 * np.tanh(0.5 * 1.0 + 0.01 * 10 + 0.1) + 0.1)
    third = np.tanh(0.5 * 3.0 + 0.01 * 30 + 0.1)
    np.testing.assert_allclose(logits, [[10 * second + 1], [1], [10 * third + 1]], rtol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize(
    ("cell_type", "keras_layer"),
    [("simple_rnn", keras.layers.SimpleRNN), ("lstm", keras.layers.LSTM), ("gru", keras.layers.GRU)],
)
def test_two_layers_are_those_of_keras(cell_type, keras_layer, return_sequences, mode):
    logits, mask, variables = run(
        mode=mode, rnn_units=[4, 2], cell_type=cell_type, return_sequences=return_sequences, units=2
    )
    stack = f"rnn_model/rnn/stacked_rnn_cells/{cell_type}_cell"
    outputs = tf.ragged.constant(ROWS).to_tensor()[..., tf.newaxis]
    for index, size in enumerate([4, 2]):
        name = f"{stack}_{index}" if index else stack
        parts = ("kernel", "recurrent_kernel", "bias")
        is_last = index == 1
        layer = keras_layer(size, return_sequences=return_sequences or not is_last)
        layer.build(outputs.shape)
        layer.set_weights([variables.pop(f"{name}/{part}") for part in parts])
        outputs = layer(outputs, mask=tf.constant(mask))
    kernel = variables.pop("rnn_model/logits/kernel")
    bias = variables.pop("rnn_model/logits/bias")
    assert not variables
    np.testing.assert_allclose(logits, outputs.numpy() @ kernel + bias, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "units", "is_one_operation"),
    [("train", 8, True), ("eval", 8, True), ("infer", 8, False), ("train", 9, False), ("train", 80, False)],
)
def test_a_small_lstm_is_one_operation_where_it_is_not_served(graph, mode, units, is_one_operation):
    """A large one is faster in a loop; of odd numbers of units the operation warns at each step."""
    rnn_logit_fn_builder(1, [VALUE], rnn_units=units, cell_type="lstm")(features(), mode)
    types = {operation.type for operation in graph.get_operations()}
    assert ("BlockLSTM" in types) == is_one_operation
    assert bool({"While", "StatelessWhile"} & types) != is_one_operation


@pytest.mark.parametrize("cell_type", ["simple_rnn", "lstm", "gru"])
def test_initial_values_are_those_of_keras(cell_type):
    _, _, variables = run(rnn_units=8, cell_type=cell_type)
    cell = f"rnn_model/{cell_type}/{cell_type}_cell"
    recurrent = variables[f"{cell}/recurrent_kernel"]
    # An orthogonal matrix, of which rows are left when it has more columns.
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(8), atol=1e-5)
    bias = variables[f"{cell}/bias"]
    if cell_type == "lstm":
        assert bias.tolist() == [0.0] * 8 + [1.0] * 8 + [0.0] * 16
    else:
        assert bias.shape == ((8,) if cell_type == "simple_rnn" else (2, 24))
        assert not bias.any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cell_type", ["simple_rnn", "lstm"])
@pytest.mark.parametrize("return_sequences", [False, True])
def test_only_empty_sequences(return_sequences, cell_type, session):
    """As when a request holds a single example without a token: its size is known late."""
    lengths = tf1.placeholder_with_default([0, 0], [None])
    values = tf.RaggedTensor.from_row_lengths(tf.constant([], tf.float32), lengths)
    arguments = {"rnn_units": [2], "cell_type": cell_type, "return_sequences": return_sequences}
    logits = rnn_logit_fn_builder(1, [VALUE], **arguments)({"value": values}, "train").logits
    gradients = tf.gradients(tf.reduce_sum(logits), tf1.trainable_variables())
    session.run(tf1.global_variables_initializer())
    assert session.run(logits).tolist() == ([[], []] if return_sequences else [[0.0]] * 2)
    assert not any(gradient.any() for gradient in session.run(gradients[:3]))


def test_names_of_variables():
    ids = fc.sequence_categorical_column_with_identity("ids", 3)
    kind = fc.categorical_column_with_identity("kind", 2)

    _, _, variables = run(
        columns=[fc.embedding_column(ids, 2)],
        context_feature_columns=[fc.embedding_column(kind, 2)],
        make_features=lambda: {"ids": tf.constant([[0, 1]]), "kind": tf.constant([1])},
        rnn_units=4,
        cell_type="gru",
    )
    assert set(variables) == {
        "sequence_features/ids_embedding/embedding_weights",
        "dense_features/kind_embedding/embedding_weights",
        "rnn_model/gru/gru_cell/kernel",
        "rnn_model/gru/gru_cell/recurrent_kernel",
        "rnn_model/gru/gru_cell/bias",
        "rnn_model/logits/kernel",
        "rnn_model/logits/bias",
    }


@pytest.mark.more
@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
@pytest.mark.parametrize("return_sequences", [False, True])
def test_own_cells_compute_what_named_ones_do(kind, return_sequences):
    layers = keras.layers if kind == "keras" else pytest.importorskip("tf_keras").layers
    _, _, variables = run(rnn_units=[3, 2], cell_type="lstm", return_sequences=return_sequences)
    expected, _, _ = run(variables, rnn_units=[3, 2], cell_type="lstm", return_sequences=return_sequences)
    for own in (
        {"rnn_cell_fn": lambda: [layers.LSTMCell(3), layers.LSTMCell(2)]},
        {"rnn_cell_fn": lambda: layers.StackedRNNCells([layers.LSTMCell(3), layers.LSTMCell(2)])},
        {"rnn_units": [3, 2], "cell_type": layers.LSTMCell},
    ):
        logits, _, names = run(variables, return_sequences=return_sequences, **own)
        assert set(names) == set(variables)
        np.testing.assert_allclose(logits, expected, rtol=1e-5)


def test_the_name_of_a_cell_is_in_its_variables():
    _, _, variables = run(rnn_cell_fn=lambda: keras.layers.GRUCell(2, name="mine"))
    assert "rnn_model/rnn/mine/recurrent_kernel" in variables


def test_dropout_of_own_cells_is_for_training_only():
    arguments = {
        "columns": [fc.indicator_column(fc.sequence_categorical_column_with_identity("ids", 3))],
        "make_features": lambda: {"ids": tf.constant([[0, 1], [2, 0]])},
        "rnn_cell_fn": lambda: keras.layers.SimpleRNNCell(50, dropout=0.5, seed=1),
    }
    in_use, _, weights = run(mode="infer", **arguments)
    in_training, _, names = run(weights, mode="train", **arguments)
    again, _, _ = run(weights, mode="infer", **arguments)
    np.testing.assert_allclose(in_use, again, rtol=1e-5)
    assert np.abs(in_training - in_use).max() > 1e-3
    # A random state is no part of checkpoints, as in tf.estimator.
    assert not [name for name in names if "seed" in name]


class NoCell:
    def call(self, inputs, states):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "units must be the size of a recurrent layer"),
        ({"rnn_units": []}, "units must be the size of a recurrent layer"),
        ({"rnn_units": [2, 0]}, "units must be the size of a recurrent layer"),
        ({"rnn_units": "32"}, "units must be the size of a recurrent layer"),
        ({"rnn_units": [2], "cell_type": "lstmm"}, r"Supported strings are.*'lstm'.*'lstmm'"),
        ({"rnn_units": [2], "rnn_cell_fn": NoCell}, "must not be specified when using rnn_cell_fn"),
        ({"cell_type": "gru", "rnn_cell_fn": NoCell}, "must not be specified when using"),
        ({"rnn_cell_fn": NoCell}, "a `call` method and a `state_size`"),
    ],
)
def test_what_can_not_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        run(**arguments)


@pytest.mark.parametrize("rnn_units", [np.int64(1), [np.int64(1)]])
def test_sizes_may_be_numpy_integers(rnn_units):
    logits, _, _ = run(rnn_units=rnn_units)
    assert logits.shape == (3, 1)
