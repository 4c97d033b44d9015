import pytest
import tensorflow as tf

from estimator_core.logits import dnn

tf1 = tf.compat.v1

VALUES = [[0.0, 2.0], [0.0, 0.0]]  # three of four are zero


def summaries():
    """Returns the values of the summaries of the current graph, by tag."""
    with tf1.Session() as session:
        serialized = session.run(tf1.get_collection(tf1.GraphKeys.SUMMARIES))
    protos = [tf1.Summary.FromString(one) for one in serialized]
    return {value.tag: value for proto in protos for value in proto.value}


def check(found, tag):
    assert set(found) == {f"{tag}/fraction_of_zero_values", f"{tag}/activation"}
    assert found[f"{tag}/fraction_of_zero_values"].simple_value == pytest.approx(0.75)
    histogram = found[f"{tag}/activation"].histo
    assert (histogram.num, histogram.sum, histogram.max) == (4.0, 2.0, 2.0)


def test_the_share_of_zeros_and_a_histogram():
    with tf.Graph().as_default():
        dnn.add_activation_summary(tf.constant(VALUES), "dnn/hiddenlayer_3")
        check(summaries(), "dnn/hiddenlayer_3")


def test_logits_with_their_summaries():
    def logit_fn(features, mode):
        assert mode == "eval"
        return features["x"]

    with tf.Graph().as_default():
        x = tf.constant(VALUES)
        with_summary = dnn.with_activation_summary(logit_fn, "dnn/logits")
        assert with_summary({"x": x}, "eval") is x
        check(summaries(), "dnn/logits")
