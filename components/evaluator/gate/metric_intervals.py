"""Confidence intervals of a model's own metrics, on all examples or on those of a slice."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from components.evaluator.gate import intervals
from components.evaluator.gate.intervals import Difference, finite
from components.evaluator.gate.labelled_predictions import LabelledPredictions, Values, losses

Interval = tuple[float | None, float | None]
"""Low and high; None for an infinite end."""


def metric_intervals(
    labelled: LabelledPredictions, answers: Values, confidence: float, *, all_metrics: bool = False
) -> dict[str, Interval]:
    """Returns the intervals of a model's metrics, by the names in TFMA and Keras."""
    differences = dict(_check_metrics(labelled, answers, confidence))
    if all_metrics:
        differences |= dict(_others(labelled, answers, confidence))
    return {name: (finite(metric.low), finite(metric.high)) for name, metric in differences.items()}


def _check_metrics(
    labelled: LabelledPredictions, answers: Values, confidence: float
) -> Iterator[tuple[str, Difference]]:
    weights, of_each = labelled.weights, losses(labelled, answers)
    nothing = np.zeros_like(of_each)
    if labelled.problem_type == "binary":
        difference = intervals.auc_difference(labelled.labels, answers[:, 0], None, weights, confidence)
        yield "auc", Difference(difference.value + 0.5, difference.low + 0.5, difference.high + 0.5)
        loss = "binary_crossentropy"
    elif labelled.problem_type == "multi-class":
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
    labelled: LabelledPredictions, answers: Values, confidence: float
) -> Iterator[tuple[str, Difference]]:
    if labelled.problem_type == "multi-class":
        return
    weights, answer = labelled.weights, answers[:, 0]
    nothing = np.zeros_like(answer)
    yield ("mean_label", intervals.mean_difference(labelled.labels, nothing, weights, confidence))
    yield "mean_prediction", intervals.mean_difference(answer, nothing, weights, confidence)
    if labelled.problem_type == "regression":
        errors = np.abs(answer - labelled.labels)
        yield ("mean_absolute_error", intervals.mean_difference(errors, nothing, weights, confidence))
        return
    is_positive, is_taken = labelled.labels > 0.5, answer > 0.5
    everywhere: npt.NDArray[np.bool_] = np.ones(len(answer), bool)
    for name, right, among in (
        ("binary_accuracy", is_positive == is_taken, everywhere),
        ("precision", is_positive, is_taken),
        ("recall", is_taken, is_positive),
    ):
        if weights[among].sum() > 0:
            part = weights[among]
            share = float(np.average(right[among], weights=part))
            size = float(part.sum()) ** 2 / float(part @ part)  # effective number of examples (Kish)
            yield (name, Difference(share, *intervals.wilson_interval(share * size, size, confidence)))
