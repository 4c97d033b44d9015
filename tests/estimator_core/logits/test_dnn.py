import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.logits import dnn_logit_fn_builder
from estimator_core.logits.dnn import batch_normalization

fc = tf.feature_column
PRICE = fc.numeric_column("price")


def ones(name, shape):
    """The values of weights; those of biases are zeros."""
    return np.full(shape, 0.0 if name.endswith("bias") else 1.0, np.float32)


def logits_of(price, hidden_units, mode="infer", values=ones, **settings):
    """Returns the logits of one example, with variables set by `values`."""
    with tf.Graph().as_default():
        tf1.set_random_seed(1)
        logit_fn = dnn_logit_fn_builder(1, hidden_units, [PRICE], **settings)
        logits = logit_fn({"price": tf.constant([[price]])}, mode)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for variable in tf1.trainable_variables():
                variable.load(values(variable.op.name, variable.shape), session)
            return session.run(logits).item()


def test_forward_pass_by_hand():
    values = {
        "dnn/hiddenlayer_0/kernel": [[2.0, -2.0]],
        "dnn/hiddenlayer_0/bias": [1.0, 1.0],
        "dnn/logits/kernel": [[10.0], [100.0]],
        "dnn/logits/bias": [0.5],
    }
    # relu([7, -5]) = [7, 0]; 7 * 10 + 0.5
    assert logits_of(3.0, [2], values=lambda name, _: np.float32(values.pop(name))) == 70.5
    assert not values


def test_no_hidden_layer_and_linear_activation(graph):
    dnn_logit_fn_builder(2, [], [PRICE])({"price": tf.constant([[3.0]])}, "train")
    assert [v.op.name for v in tf1.trainable_variables()] == ["dnn/logits/kernel", "dnn/logits/bias"]


@pytest.mark.parametrize(
    ("activation_fn", "expected"), [(None, -2.0), (tf.nn.relu, 0.0), ("tanh", np.tanh(-2.0))]
)
def test_activation_fn_is_applied_to_the_hidden_layer(activation_fn, expected):
    assert logits_of(-2.0, [1], activation_fn=activation_fn) == pytest.approx(expected, rel=1e-5)


def test_dropout_is_for_training_only():
    settings = {"activation_fn": None, "dropout": 0.25}
    assert logits_of(1.0, [1000], "eval", **settings) == 1000.0
    # Those that stay are scaled by 4 / 3: a mean of 1000, with standard deviation 18.
    trained = logits_of(1.0, [1000], "train", **settings)
    assert trained != 1000.0
    assert trained == pytest.approx(1000.0, abs=100.0)


def test_batch_normalization_serves_with_moving_averages(session):
    value = tf.constant([[1.0], [3.0]])
    trained = batch_normalization(value, training=True)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    with tf1.variable_scope(tf1.get_variable_scope(), reuse=True):
        served = batch_normalization(value, training=False)
    averages = [v for v in tf1.global_variables() if "moving" in v.op.name]
    session.run(tf1.global_variables_initializer())
    # Mean 2, variance 1.
    scale = 1 / np.sqrt(1.001)
    np.testing.assert_allclose(session.run(trained), [[-scale], [scale]], rtol=1e-5)
    session.run(updates)
    assert session.run(averages) == [pytest.approx(0.002), pytest.approx(1.0)]
    expected = [[(1 - 0.002) * scale], [(3 - 0.002) * scale]]
    np.testing.assert_allclose(session.run(served), expected, rtol=1e-5)


def test_a_batch_without_rows_leaves_the_moving_averages_of_batch_normalization(session):
    value = tf1.placeholder(tf.float32, [None, 1])
    batch_normalization(value, training=True)
    updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    averages = [each for each in tf1.global_variables() if "moving" in each.op.name]
    session.run(tf1.global_variables_initializer())
    session.run(updates, {value: [[1.0], [3.0]]})
    session.run(updates, {value: np.zeros([0, 1])})
    assert session.run(averages) == [pytest.approx(0.002), pytest.approx(1.0)]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"hidden_units": 5}, "list of layer sizes"),
        ({"hidden_units": [0]}, "positive"),
        ({"hidden_units": ["8.5"]}, "positive"),
        ({"hidden_units": [8.5]}, "positive"),
        ({"hidden_units": [None]}, "positive"),
        ({"hidden_units": ["-8"]}, "positive"),
        ({"hidden_units": "16 8"}, "list of layer sizes"),
        ({"units": 0}, "positive"),
        ({"dropout": 1.0}, "dropout"),
        ({"activation_fn": 3}, "activation_fn"),
    ],
)
def test_what_can_not_work(kwargs, message):
    arguments = {"units": 1, "hidden_units": [8], "feature_columns": [PRICE], **kwargs}
    with pytest.raises(ValueError, match=message):
        dnn_logit_fn_builder(**arguments)


@pytest.mark.parametrize("size", [np.int32(4), 4.0, "4", " 4", "+4"])  # as 2.15, which calls int()
def test_sizes_may_be_whole_numbers_of_any_type_or_text(graph, size):
    dnn_logit_fn_builder(np.int64(2), [size], [PRICE])({"price": tf.constant([[3.0]])}, "train")
    shapes = {v.op.name: v.shape.as_list() for v in tf1.trainable_variables()}
    assert shapes["dnn/hiddenlayer_0/kernel"] == [1, 4]
    assert shapes["dnn/logits/kernel"] == [4, 2]
