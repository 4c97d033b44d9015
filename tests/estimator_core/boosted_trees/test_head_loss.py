import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.boosted_trees.head_loss import HeadLoss

FEATURES = {"x": [1.0, 2.0], "weight": [1.0, 3.0], "other": [5.0, 5.0]}


def evaluated(head, labels, logits, features=FEATURES):
    """The loss, gradients and Hessians, and the names of the features that are kept."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tensors = {name: tf.constant(value) for name, value in features.items()}
        of_heads = labels if isinstance(labels, dict) else {"": labels}
        of_heads = {name: tf.constant(value) for name, value in of_heads.items()}
        loss = HeadLoss(head, tensors, of_heads.get("", of_heads))
        session.run(tf1.tables_initializer())
        data = session.run(loss.batch)
        value = loss.value(session, data, np.array(logits, np.float32))
        same_value, *derivatives = loss.gradients(session, data, np.array(logits))
        assert same_value == value
        return value, *derivatives, sorted(data[1])


TWO_NUMBERS = ([1.0, 4.0], [[2.0], [2.0]])
WORDS = est.BinaryClassHead(label_vocabulary=["no", "yes"])
LINES = est.RegressionHead(loss_fn=lambda labels, logits: tf.abs(labels - logits), loss_reduction="sum")
SEVERAL = est.MultiHead([est.RegressionHead(name="a"), est.RegressionHead(name="b")])
OF_SEVERAL = ({"a": [1.0, 1.0], "b": [0.0, 4.0]}, [[1.0, 1.0]] * 2)
WEIGHTED, SUM = est.RegressionHead(weight_column="weight"), est.RegressionHead(loss_reduction="sum")

# Labels and logits; the loss, and the derivatives of the sum over the examples.
LOSSES = {
    "a weighted mean": (WEIGHTED, *TWO_NUMBERS, (1 * 1 + 3 * 4) / 2, [[2.0], [-12.0]], [[2.0], [6.0]]),
    "words as labels": (WORDS, ["yes", "no"], [[0.0], [0.0]], np.log(2), [[-0.5], [0.5]], [[0.25], [0.25]]),
    "a sum is as it is": (SUM, *TWO_NUMBERS, 5, [[2.0], [-4.0]], [[2.0], [2.0]]),
    "lines have Hessians of one": (LINES, *TWO_NUMBERS, 3, [[1.0], [-1.0]], [[1.0], [1.0]]),
    "heads have their labels": (
        SEVERAL,
        *OF_SEVERAL,
        (1 + 9) / 2,
        [[0.0, 2.0], [0.0, -6.0]],
        [[2.0, 2.0]] * 2,
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_derivatives(name):
    head, labels, logits, loss, gradients, hessians = LOSSES[name]
    found = evaluated(head, labels, logits)
    assert found[0] == pytest.approx(loss)
    assert [values.tolist() for values in found[1:3]] == [gradients, hessians]
    assert found[3] == (["weight"] if head is WEIGHTED else [])


def test_each_logit_has_its_own_second_derivative():
    head = est.MultiLabelHead(2)
    logits = np.array([[0.0, 1.0], [2.0, -1.0]])
    _, gradients, hessians, _ = evaluated(head, [[1, 0], [1, 1]], logits)
    shares = 1 / (1 + np.exp(-logits))
    # The mean over two classes.
    assert gradients == pytest.approx((shares - [[1, 0], [1, 1]]) / 2, abs=1e-6)
    assert hessians == pytest.approx(shares * (1 - shares) / 2, abs=1e-6)


def test_a_loss_without_labels_is_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="input_fn gave none"):
        HeadLoss(est.RegressionHead(), {"x": tf.zeros([2])}, None)
