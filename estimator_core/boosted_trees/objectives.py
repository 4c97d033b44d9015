"""Objectives that the trees minimize: LightGBM's own, or any head's loss by its gradients."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from estimator_core.heads import BinaryClassHead, Head, MultiClassHead, RegressionHead
from estimator_core.heads.weighted import WeightedHead

_MAX_PROBABILITY = 1.0 - 2.0**-53  # the largest float64 below 1


@dataclasses.dataclass(frozen=True)
class Objective:
    """An objective of LightGBM."""

    parameters: dict[str, Any]
    loss_scale: float = 1.0  # Ratio of the head's loss to the loss that the library minimizes
    # Function from the library's float64 predictions to logits.
    logits: Callable[[Any], Any] = lambda predictions: predictions
    # Function from labels `[rows]` and weights `[rows]` to the constant logits,
    # `[logits_dimension]`, that minimize the loss; None finds them by Newton's method.
    center: Callable[[Any, Any], Any] | None = None
    # Largest Hessian of an example whose weight is 1; infinity if there is no limit.
    max_hessian: float = math.inf


BY_GRADIENTS = Objective({"objective": "none"})
"""The objective of heads that LightGBM has none for: gradients and Hessians come from the head's loss."""


def may_have_objective(head: Head) -> bool:
    """Returns whether LightGBM may have the head's loss: the head's own, with one number as label."""
    if not isinstance(head, WeightedHead) or not head.has_own_loss:
        return False
    # A subclass may have another loss.
    return type(head) in (BinaryClassHead, MultiClassHead) or (
        type(head) is RegressionHead and head.logits_dimension == 1
    )


def head_objective(head: Head, labels: Any) -> Objective:
    """Returns the objective for a head's loss on processed labels."""
    if not may_have_objective(head):
        num_class = {"num_class": head.logits_dimension} if head.logits_dimension > 1 else {}
        return dataclasses.replace(BY_GRADIENTS, parameters={"objective": "none", **num_class})
    if type(head) is RegressionHead:
        # LightGBM minimizes half the squared error.
        return Objective({"objective": "regression"}, 2.0, center=_mean, max_hessian=1.0)
    if type(head) is MultiClassHead:
        parameters = {"objective": "multiclass", "num_class": head.logits_dimension}
        return Objective(
            parameters,
            logits=lambda probabilities: np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)),
            center=lambda *values: _log_shares(head.logits_dimension, *values),
            max_hessian=0.25 * head.logits_dimension / (head.logits_dimension - 1),
        )
    is_class = np.isin(labels, (0.0, 1.0)).all()
    name = "binary" if is_class else "cross_entropy"
    return Objective(
        {"objective": name},
        logits=_log_odds,
        center=lambda *values: _log_odds(np.clip(_mean(*values), 1e-15, 1 - 1e-15)),
        max_hessian=0.25,
    )


def _mean(labels: Any, weights: Any) -> Any:
    return np.average(labels, weights=weights)[np.newaxis]


def _log_shares(num_classes: int, labels: Any, weights: Any) -> Any:
    sums = np.bincount(labels.astype(np.int64), weights=weights, minlength=num_classes)
    return np.log(np.maximum(sums / sums.sum(), 1e-15))


def _log_odds(probabilities: Any) -> Any:
    probabilities = np.clip(probabilities, np.finfo(np.float64).tiny, _MAX_PROBABILITY)
    return np.log(probabilities) - np.log1p(-probabilities)
