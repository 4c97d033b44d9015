import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.boosted_trees.objectives import head_objective, may_have_objective


class HeadOfOnesOwn(est.RegressionHead):
    """A user's head, which might have another loss."""


def absolute_error(labels, logits):
    return tf.abs(labels - logits)


@pytest.mark.parametrize(
    ("head", "labels", "name"),
    [
        (est.BinaryClassHead(), [[0.0], [1.0]], "binary"),
        (est.BinaryClassHead(), [[0.0], [0.7]], "cross_entropy"),
        (est.MultiClassHead(3), [[0], [2]], "multiclass"),
        (est.RegressionHead(), [[0.5], [2.0]], "regression"),
    ],
)
def test_what_the_library_knows(head, labels, name):
    assert may_have_objective(head)
    assert head_objective(head, np.array(labels)).parameters["objective"] == name


@pytest.mark.parametrize(
    ("head", "classes"),
    [
        (est.RegressionHead(label_dimension=2), 2),
        (est.RegressionHead(loss_fn=absolute_error), None),
        (est.PoissonRegressionHead(), None),
        (est.LogisticRegressionHead(), None),
        (est.MultiLabelHead(4), 4),
        (est.MultiHead([est.BinaryClassHead(name="a"), est.BinaryClassHead(name="b")]), 2),
        (HeadOfOnesOwn(), None),
    ],
)
def test_what_has_gradients(head, classes):
    assert not may_have_objective(head)
    found = head_objective(head, None).parameters
    assert found["objective"] == "none"
    assert found.get("num_class") == classes


def test_the_center_is_the_best_constant_prediction():
    weights = np.array([1.0, 1.0, 2.0])
    binary = head_objective(est.BinaryClassHead(), np.array([[0.0], [1.0]]))
    found = binary.center(np.array([0.0, 0.0, 1.0]), weights)
    assert found == pytest.approx([0.0])  # half of the weight
    squares = head_objective(est.RegressionHead(), None)
    assert squares.center(np.array([1.0, 2.0, 5.0]), weights) == pytest.approx([13 / 4])
    three = head_objective(est.MultiClassHead(3), None)
    found = three.center(np.array([0, 1, 1]), weights)
    assert found[:2] == pytest.approx(np.log([1 / 4, 3 / 4]))
    assert np.isfinite(found).all()  # though the third class is not there
    assert binary.center(np.array([1.0, 1.0, 1.0]), None)[0] < 40


def test_logits_of_predictions():
    binary = head_objective(est.BinaryClassHead(), np.array([[0.0], [1.0]]))
    logits = np.array([-30.0, 0.0, 3.0])
    assert binary.logits(1 / (1 + np.exp(-logits))) == pytest.approx(logits)
    assert np.isfinite(binary.logits(np.array([0.0, 1.0]))).all()
    three = head_objective(est.MultiClassHead(3), None)
    shares = np.array([0.2, 0.3, 0.5])
    assert np.exp(three.logits(shares)) == pytest.approx(shares)
