"""Centering: the logits of a model that predicts the same for all examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_core.boosted_trees.objectives import Objective
from estimator_core.boosted_trees.training_data import TrainingData

_MAX_STEPS = 100
_TOLERANCE = 1e-7
_MAX_STEP_SIZE = 10.0


def center(
    objective: Objective,
    labels: Any,
    data: TrainingData,
    gradients: Callable[[Any], tuple[Any, Any]],
    logits_dimension: int,
) -> Any:
    """Returns the constant logits that minimize the loss, float64 `[logits_dimension]`.

    `labels`: labels `[rows]`, for an objective that computes its center.
    `gradients`: function from logits `[rows, logits_dimension]` to gradients and Hessians.
    """
    if objective.center is not None:
        return objective.center(labels, data.weights)
    bias = np.zeros(logits_dimension)
    for _ in range(_MAX_STEPS):
        first, second = gradients(np.tile(bias, (data.num_rows, 1)))
        step = -first.sum(axis=0, dtype=np.float64) / second.sum(axis=0, dtype=np.float64)
        bias = bias + np.clip(step, -_MAX_STEP_SIZE, _MAX_STEP_SIZE)
        if np.abs(step).max() < _TOLERANCE:
            break
    return bias
