import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.logits import baseline_logit_fn_builder


def logits_of(make_features, units=2, feed=None):
    with tf.Graph().as_default():
        logits = baseline_logit_fn_builder(units)(make_features(), "train")
        (bias,) = tf1.trainable_variables()
        assert (bias.op.name, bias.shape) == ("baseline/bias", (units,))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(bias).tolist() == [0.0] * units
            session.run(bias.assign(np.arange(1.0, units + 1)))
            return session.run(logits, feed)


@pytest.mark.parametrize(
    ("make_features", "feed"),
    [
        (lambda: {"x": tf.zeros([3]), "y": tf.zeros([3, 5])}, None),
        (lambda: {"x": tf.SparseTensor([[0, 0]], ["a"], [3, 4])}, None),
        (lambda: {"x": tf.ragged.constant([[1, 2], [], [3]])}, None),
        (lambda: {"x": np.zeros([3]), "y": [[1], [2], [3]]}, None),
        (lambda: {"x": tf1.placeholder(tf.float32, [None, 1], name="x")}, {"x:0": [[0.0]] * 3}),
    ],
    ids=["dense", "sparse", "ragged", "arrays and lists", "of unknown size"],
)
def test_the_bias_for_each_example(make_features, feed):
    assert logits_of(make_features, feed=feed).tolist() == [[1.0, 2.0]] * 3


def test_features_that_can_not_work():
    with pytest.raises(ValueError, match="at least one feature"):
        logits_of(dict)
    with pytest.raises(tf.errors.InvalidArgumentError, match="same batch size"):
        logits_of(lambda: {"x": tf.zeros([3]), "y": tf.zeros([2])})
