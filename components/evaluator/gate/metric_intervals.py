"""Confidence intervals of a model's own metrics, on all examples or on those of a slice."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from components.evaluator.gate import intervals
from components.evaluator.gate.intervals import Difference
from components.evaluator.gate.labelled_predictions import LabelledPredictions, Values, losses

Interval = tuple[float | None, float | None]
"""Low and high; None for an infinite end."""


def metric_intervals(
    given: LabelledPredictions, answers: Values, confidence: float, *, all_metrics: bool = False
) -> dict[str, Interval]:
    """Returns the intervals of a model's metrics, by the names in TFMA and Keras.

    `all_metrics`: True to include further metrics; False for the metric and the loss of the default checks
    only.
    """
    found = dict(_of_checks(given, answers, confidence))
    if all_metrics:
        found |= dict(_others(given, answers, confidence))
    return {name: (_finite(one.low), _finite(one.high)) for name, one in found.items()}


def _of_checks(
    given: LabelledPredictions, answers: Values, confidence: float
) -> Iterator[tuple[str, Difference]]:
    weights, of_each = given.weights, losses(given, answers)
    nothing = np.zeros_like(of_each)
    if given.problem_type == "binary":
        found = intervals.auc_difference(given.labels, answers[:, 0], None, weights, confidence)
        yield "auc", Difference(found.value + 0.5, found.low + 0.5, found.high + 0.5)
        loss = "binary_crossentropy"
    elif given.problem_type == "multi-class":
        yield (
            "sparse_categorical_accuracy",
            intervals.rate_difference(answers[:, 1], nothing, weights, confidence),
        )
        loss = "sparse_categorical_crossentropy"
    else:
        yield (
            "root_mean_squared_error",
            intervals.root_mean_difference(of_each, nothing, weights, confidence),
        )
        loss = "mean_squared_error"
    yield loss, intervals.mean_difference(of_each, nothing, weights, confidence)


def _others(
    given: LabelledPredictions, answers: Values, confidence: float
) -> Iterator[tuple[str, Difference]]:
    if given.problem_type == "multi-class":
        return
    weights, answer = given.weights, answers[:, 0]
    nothing = np.zeros_like(answer)
    yield (
        "mean_label",
        intervals.mean_difference(given.labels, nothing, weights, confidence),
    )
    yield "mean_prediction", intervals.mean_difference(answer, nothing, weights, confidence)
    if given.problem_type == "regression":
        errors = np.abs(answer - given.labels)
        yield (
            "mean_absolute_error",
            intervals.mean_difference(errors, nothing, weights, confidence),
        )
        return
    is_positive, is_taken = given.labels > 0.5, answer > 0.5
    everywhere: npt.NDArray[np.bool_] = np.ones(len(answer), bool)
    for name, right, among in (
        ("binary_accuracy", is_positive == is_taken, everywhere),
        ("precision", is_positive, is_taken),
        ("recall", is_taken, is_positive),
    ):
        if weights[among].sum() > 0:
            yield name, _share(right[among].astype(np.float64), weights[among], confidence)


def _share(right: Values, weights: Values, confidence: float) -> Difference:
    """Returns the interval of a weighted share, with the effective number of examples (Kish)."""
    share = float(np.average(right, weights=weights))
    size = float(weights.sum()) ** 2 / float(weights @ weights)
    return Difference(share, *intervals.wilson_interval(share * size, size, confidence))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
