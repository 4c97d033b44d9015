import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.boosted_trees.model_fn import center
from estimator_core.boosted_trees.objectives import (
    BY_GRADIENTS,
    Objective,
    head_objective,
    may_have_objective,
)
from estimator_core.boosted_trees.training_data import TrainingData


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
        (est.RegressionHead(loss_fn=lambda labels, logits: tf.abs(labels - logits)), None),
        (est.PoissonRegressionHead(), None),
        (est.LogisticRegressionHead(), None),
        (est.MultiLabelHead(4), 4),
        (est.MultiHead([est.BinaryClassHead(name="a"), est.BinaryClassHead(name="b")]), 2),
        (type("HeadOfOnesOwn", (est.RegressionHead,), {})(), None),  # it might have another loss
    ],
)
def test_what_has_gradients(head, classes):
    assert not may_have_objective(head)
    found = head_objective(head, None).parameters
    assert (found["objective"], found.get("num_class")) == ("none", classes)


def test_the_center_is_the_best_constant_prediction():
    weights = np.array([1.0, 1.0, 2.0])
    binary = head_objective(est.BinaryClassHead(), np.array([[0.0], [1.0]]))
    found = binary.center(np.array([0.0, 0.0, 1.0]), weights)
    assert found == pytest.approx([0.0])  # half of the weight
    squares = head_objective(est.RegressionHead(), None)
    assert squares.center(np.array([1.0, 2.0, 5.0]), weights) == pytest.approx([13 / 4])
    found = head_objective(est.MultiClassHead(3), None).center(np.array([0, 1, 1]), weights)
    assert found[:2] == pytest.approx(np.log([1 / 4, 3 / 4]))
    assert np.isfinite(found).all()  # though the third class is not there
    assert binary.center(np.array([1.0, 1.0, 1.0]), None)[0] < 40


DATA = TrainingData(np.zeros((4, 1), np.float32), np.array([1.0, 1.0, 1.0, 3.0]), None)
COUNTS = np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0], [6.0, 9.0]])


def poisson(logits):
    return np.exp(logits) - COUNTS, np.exp(logits)


def test_newtons_method_finds_the_center_of_an_objective_that_does_not_know_it():
    """The logarithm of the mean count."""
    found = center(BY_GRADIENTS, None, DATA, poisson, 2)
    assert found == pytest.approx([np.log(3), np.log(9)], abs=1e-6)
    objective = Objective({}, center=lambda labels, weights: [(labels * weights).sum()])
    assert center(objective, np.array([1.0, 0.0, 0.0, 2.0]), DATA, poisson, 1) == [7.0]


@pytest.mark.parametrize("head", [est.RegressionHead(), est.BinaryClassHead(), est.MultiClassHead(3)])
def test_the_center_of_rows_without_weight_is_0(head):
    labels = np.array([0.0, 1.0, 1.0, 0.0])
    data = DATA._replace(weights=np.zeros(4, np.float32))
    found = center(head_objective(head, labels), labels, data, None, head.logits_dimension)
    assert found.tolist() == [0.0] * head.logits_dimension


def test_logits_of_predictions():
    binary = head_objective(est.BinaryClassHead(), np.array([[0.0], [1.0]]))
    logits = np.array([-30.0, 0.0, 3.0])
    assert binary.logits(1 / (1 + np.exp(-logits))) == pytest.approx(logits)
    assert np.isfinite(binary.logits(np.array([0.0, 1.0]))).all()
    three = head_objective(est.MultiClassHead(3), None)
    shares = np.array([0.2, 0.3, 0.5])
    assert np.exp(three.logits(shares)) == pytest.approx(shares)
