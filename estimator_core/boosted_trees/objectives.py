"""What the trees minimize: an objective that the library has, or any head's loss by its gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_core.heads import BinaryClassHead, Head, MultiClassHead, RegressionHead
from estimator_core.heads.weighted import WeightedHead

_MOST_SURE = 1.0 - 2.0**-53  # the largest float64 below 1


@dataclasses.dataclass(frozen=True)
class Objective:
    """An objective of LightGBM.

    Attributes:
        parameters: Its parameters.
        loss_scale: How many times the loss that the library minimizes the head's loss is.
        logits: From what the library predicts, float64, to logits.
        center: From labels `[rows]` and weights `[rows]` to the logits, `[logits_dimension]`, of a model
            that makes the same prediction for all; None when Newton's method finds them.
    """

    parameters: dict[str, Any]
    loss_scale: float = 1.0
    logits: Callable[[Any], Any] = lambda predictions: predictions
    center: Callable[[Any, Any], Any] | None = None


BY_GRADIENTS = Objective({"objective": "none"})
"""No objective of the library's: gradients and Hessians come from the head's loss."""


def may_have_objective(head: Head) -> bool:
    """Returns whether the library may know the loss of a head: its own loss, of a label with one number."""
    if not isinstance(head, WeightedHead) or not head.has_own_loss:
        return False
    # A subclass of the user's may have another loss.
    return type(head) in (BinaryClassHead, MultiClassHead) or (
        type(head) is RegressionHead and head.logits_dimension == 1
    )


def objective_of(head: Head, labels: Any) -> Objective:
    """Returns the objective whose loss is that of the head.

    Args:
        head: The head.
        labels: Processed labels, `[rows, any]`.
    """
    if not may_have_objective(head):
        num_class = {"num_class": head.logits_dimension} if head.logits_dimension > 1 else {}
        return dataclasses.replace(BY_GRADIENTS, parameters={"objective": "none", **num_class})
    if type(head) is RegressionHead:
        # Half the squared error is what the library minimizes.
        return Objective({"objective": "regression"}, 2.0, center=_mean)
    if type(head) is MultiClassHead:
        parameters = {"objective": "multiclass", "num_class": head.logits_dimension}
        return Objective(
            parameters,
            logits=_log,
            center=lambda *values: _log_shares(head.logits_dimension, *values),
        )
    is_class = np.isin(labels, (0.0, 1.0)).all()
    name = "binary" if is_class else "cross_entropy"
    return Objective({"objective": name}, logits=_log_odds, center=_log_odds_of_mean)


def _mean(labels: Any, weights: Any) -> Any:
    return np.average(labels, weights=weights)[np.newaxis]


def _log_odds_of_mean(labels: Any, weights: Any) -> Any:
    return _log_odds(np.clip(_mean(labels, weights), 1e-15, 1 - 1e-15))


def _log_shares(num_classes: int, labels: Any, weights: Any) -> Any:
    sums = np.bincount(labels.astype(np.int64), weights=weights, minlength=num_classes)
    return np.log(np.maximum(sums / sums.sum(), 1e-15))


def _log(probabilities: Any) -> Any:
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


def _log_odds(probabilities: Any) -> Any:
    probabilities = np.clip(probabilities, np.finfo(np.float64).tiny, _MOST_SURE)
    return np.log(probabilities) - np.log1p(-probabilities)
