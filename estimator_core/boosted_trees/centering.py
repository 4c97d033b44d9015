"""Centering: the logits of a model that makes the same prediction for all examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_core.boosted_trees.objectives import Objective
from estimator_core.boosted_trees.training_data import TrainingData

_MOST_STEPS = 100
_CHANGE = 1e-7
_LONGEST_STEP = 10.0


def center(
    objective: Objective,
    labels: Any,
    data: TrainingData,
    gradients: Callable[[Any], tuple[Any, Any]],
    logits_dimension: int,
) -> Any:
    """Returns the logits that make the loss smallest, float64 `[logits_dimension]`.

    Args:
        objective: What is minimized.
        labels: `[rows]`, for an objective that knows its center.
        data: The training data.
        gradients: Function from logits `[rows, logits_dimension]` to gradients and Hessians.
        logits_dimension: How many logits there are.
    """
    if objective.center is not None:
        return objective.center(labels, data.weights)
    bias = np.zeros(logits_dimension)
    for _ in range(_MOST_STEPS):
        first, second = gradients(np.tile(bias, (data.num_rows, 1)))
        step = -first.sum(axis=0, dtype=np.float64) / second.sum(axis=0, dtype=np.float64)
        bias = bias + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _CHANGE:
            break
    return bias
