import numpy as np
import pytest

from estimator_core.boosted_trees.model_fn import center
from estimator_core.boosted_trees.objectives import BY_GRADIENTS, Objective
from estimator_core.boosted_trees.training_data import TrainingData

DATA = TrainingData(np.zeros((4, 1), np.float32), np.array([1.0, 1.0, 1.0, 3.0]), None)
COUNTS = np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0], [6.0, 9.0]])


def poisson(logits):
    return np.exp(logits) - COUNTS, np.exp(logits)


def test_newtons_method_finds_the_logarithm_of_the_mean_count():
    found = center(BY_GRADIENTS, None, DATA, poisson, 2)
    assert found == pytest.approx([np.log(3), np.log(9)], abs=1e-6)


def test_an_objective_that_knows_its_center():
    objective = Objective({}, center=lambda labels, weights: [(labels * weights).sum()])
    found = center(objective, np.array([1.0, 0.0, 0.0, 2.0]), DATA, poisson, 1)
    assert found == [7.0]
