import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.logits import dnn

VALUES = [[0.0, 2.0], [0.0, 0.0]]  # three of four are zero


def test_logits_and_layers_have_the_share_of_zeros_and_a_histogram(session):
    modes, x = [], tf.constant(VALUES)
    logit_fn = lambda features, mode: modes.append(mode) or features["x"]  # noqa: E731
    assert dnn.with_activation_summary(logit_fn, "dnn/logits")({"x": x}, "eval") is x
    assert modes == ["eval"]
    dnn.add_activation_summary(x, "dnn/hiddenlayer_3")
    serialized = session.run(tf1.get_collection(tf1.GraphKeys.SUMMARIES))
    values = [value for one in serialized for value in tf1.Summary.FromString(one).value]
    found = {value.tag: value for value in values}
    assert len(found) == len(values) == 4
    for tag in ("dnn/logits", "dnn/hiddenlayer_3"):
        assert found[f"{tag}/fraction_of_zero_values"].simple_value == pytest.approx(0.75)
        histogram = found[f"{tag}/activation"].histo
        assert (histogram.num, histogram.sum, histogram.max) == (4.0, 2.0, 2.0)
