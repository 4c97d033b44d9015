import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.heads import assertions


def test_a_condition_is_checked_at_once_in_eager_mode():
    assert assertions.assertion(tf.constant(True), "It must be.") == []
    with pytest.raises(ValueError, match=r"It must be\. Received: \[0 1 .* 19 \.\.\.\]$"):
        assertions.assertion(tf.constant(False), "It must be. Received:", tf.range(25))


def test_a_condition_is_checked_when_a_graph_runs(session):
    condition = tf1.placeholder(tf.bool, [])
    with tf.control_dependencies(assertions.assertion(condition, "It must be.")):
        value = tf.constant(3)
    assert session.run(value, {condition: True}) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"It must be\."):
        session.run(value, {condition: False})


@pytest.mark.parametrize(
    ("shape", "fits"),
    [([4, 1], True), ([4], True), ([1, 4], False), ([4, 1, 1], False), ([], False), ([5], False)],
)
def test_shapes_do_not_broadcast(shape, fits, session):
    tensor = tf1.placeholder(tf.float32, None)
    logits = tf1.placeholder(tf.float32, [None, 1])
    accepted = [(tf.shape(logits), logits.shape), (tf.shape(logits)[:1], logits.shape[:1])]
    checked = assertions.with_checked_shape(tensor, accepted, "No.", "logits", logits)
    feeds = {tensor: np.ones(shape), logits: np.zeros([4, 1])}
    if fits:
        assert session.run(checked, feeds).shape == tuple(shape)
    else:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"for logits with shape"):
            session.run(checked, feeds)
