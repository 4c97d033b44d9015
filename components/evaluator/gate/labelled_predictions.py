"""Answers of models to each example, reduced to the few numbers that the default checks need.

Probabilities of a thousand classes become two numbers, so that a million examples fit into memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from components.evaluator.gate.slice_columns import Codes, Column, join_columns

ProblemType = Literal["binary", "multi-class", "regression"]
Values: TypeAlias = npt.NDArray[np.float64]

_PROBLEM_TYPES: dict[str, ProblemType] = {
    "logistic": "binary",
    "probabilities": "multi-class",
    "predictions": "regression",
}
"""Problem type by the prediction of a canned head that is evaluated."""

MIN_PROBABILITY = 1e-7  # clipped as in Keras, so that a log loss stays finite
_MAX_SUM_ERROR = 1e-3  # error in the sum of an example's probabilities, which may be float16

NEXT_STEP = "Set data.problem_type (problem_type of DefaultChecks) where it is known, or give thresholds."


@dataclass(frozen=True)
class LabelledPredictions:
    problem_type: ProblemType | None  # None if it is not known, or if there are no examples
    labels: Values  # 0 or 1, class ids, or numbers: `[n]`
    weights: Values  # Weights of the examples, `[n]`
    # Answers by model. Binary: the probability of 1, `[n, 1]`. Multi-class: the probability of the right
    # class, and 1 if that is the highest, else 0, `[n, 2]`. Regression: the number, `[n, 1]`.
    answers: Mapping[str, Values]
    # Reason why the answers can't be judged, by model.
    unusable: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def from_batch(
        cls,
        labels: npt.NDArray[Any],
        predictions: Mapping[str, npt.NDArray[Any]],
        weights: npt.NDArray[Any] | None,
        problem_type: ProblemType | None,
        columns: Mapping[str, Column] | None = None,
    ) -> "LabelledPredictions":
        """Returns the labels and reduced predictions of a batch; the first model is the candidate."""
        size = len(labels)
        weighted = np.ones(size) if weights is None else np.asarray(weights, np.float64).reshape(size)
        candidate = next(iter(predictions))
        if problem_type is None:
            reason = f"its predictions have no known problem type. {NEXT_STEP}"
            return _none(weighted, {candidate: reason})
        flat = labels.reshape(-1)
        reason = _why_not_labels(flat, size, problem_type)
        if reason:
            return _none(weighted, {candidate: reason})
        numbers = flat.astype(np.float64)
        answers: dict[str, Values] = {}
        unusable: dict[str, str] = {}
        for name, values in predictions.items():
            answer = _answer(numbers, values, problem_type)
            if isinstance(answer, str):
                unusable[name] = answer
            else:
                answers[name] = answer
        return cls(problem_type, numbers, weighted, answers, unusable, columns or {})

    def take(self, index: npt.NDArray[np.int64]) -> "LabelledPredictions":
        """Returns some of the examples, without their columns."""
        return LabelledPredictions(
            self.problem_type,
            self.labels[index],
            self.weights[index],
            {name: values[index] for name, values in self.answers.items()},
            self.unusable,
        )

    def counting(self) -> "LabelledPredictions":
        """Returns the examples whose weight is not 0, with their columns."""
        index = np.flatnonzero(self.weights)
        columns = {
            name: Codes(column.codes[index], column.names) if isinstance(column, Codes) else column[index]
            for name, column in self.columns.items()
        }
        return replace(self.take(index), columns=columns)


def head_problem_type(prediction_key: str) -> ProblemType | None:
    """Returns the problem type of a canned head's prediction, such as `logistic`."""
    return _PROBLEM_TYPES.get(prediction_key.rpartition("/")[-1])


def concatenate(parts: Iterable[LabelledPredictions]) -> LabelledPredictions:
    """Joins parts into one; a model that is unusable in one part is unusable in all."""
    some = [part for part in parts if len(part.weights) or part.unusable]
    if not some:
        return _none(np.zeros(0), {})
    unusable: dict[str, str] = {}
    for part in some:
        unusable = {**part.unusable, **unusable}
    problem_type = next((part.problem_type for part in some if part.problem_type), None)
    names = [name for name in some[0].answers if name not in unusable]
    return LabelledPredictions(
        problem_type,
        np.concatenate([part.labels for part in some]),
        np.concatenate([part.weights for part in some]),
        {name: np.concatenate([part.answers[name] for part in some]) for name in names},
        unusable,
        join_columns([part.columns for part in some]),
    )


@dataclass(frozen=True)
class LabelTally:
    """Distribution of the labels of some examples, from which the trivial model predicts."""

    by_class: Mapping[int, float] = field(default_factory=dict)  # Weight by class id; empty for a regression
    weight: float = 0.0
    total: float = 0.0  # Weighted sum of the labels

    @classmethod
    def from_labels(
        cls, labels: npt.NDArray[Any], weights: Values, problem_type: ProblemType | None
    ) -> "LabelTally":
        if problem_type is None or labels.size != len(labels) or not np.issubdtype(labels.dtype, np.number):
            return cls()
        numbers = labels.astype(np.float64).reshape(-1)
        by_class: dict[int, float] = {}
        if problem_type != "regression":
            ids, index = np.unique(numbers.astype(np.int64), return_inverse=True)
            sums = np.bincount(index, weights, minlength=len(ids))
            by_class = dict(zip(ids.tolist(), sums.tolist(), strict=True))
        return cls(by_class, float(weights.sum()), float(numbers @ weights))

    def __add__(self, other: "LabelTally") -> "LabelTally":
        by_class = dict(self.by_class)
        for class_id, weight in other.by_class.items():
            by_class[class_id] = by_class.get(class_id, 0.0) + weight
        return LabelTally(by_class, self.weight + other.weight, self.total + other.total)


def trivial_answers(tally: LabelTally, labelled: LabelledPredictions) -> Values:
    """Returns the answers of a model without features: the prior, the majority class, or the mean."""
    size = len(labelled.labels)
    if labelled.problem_type != "multi-class":
        return np.full((size, 1), tally.total / tally.weight)
    majority = max(tally.by_class, key=lambda class_id: tally.by_class[class_id])
    ids = labelled.labels.astype(np.int64)
    shares = np.zeros(int(max(ids.max(initial=0), *tally.by_class)) + 1)
    for class_id, weight in tally.by_class.items():
        shares[class_id] = weight / tally.weight
    return np.stack([shares[ids], (ids == majority).astype(np.float64)], axis=1)


def losses(labelled: LabelledPredictions, answers: Values) -> Values:
    """Returns the log loss, or the squared error, of each example: `[n]`."""
    answer = answers[:, 0]
    if labelled.problem_type == "regression":
        squares: Values = (answer - labelled.labels) ** 2
        return squares
    right = answer
    if labelled.problem_type == "binary":
        right = np.where(labelled.labels > 0.5, answer, 1.0 - answer)
    logs: Values = -np.log(np.clip(right, MIN_PROBABILITY, 1.0))
    return logs


def _none(weights: Values, unusable: Mapping[str, str]) -> LabelledPredictions:
    return LabelledPredictions(None, np.zeros(len(weights)), weights, {}, unusable)


def _why_not_labels(labels: npt.NDArray[Any], size: int, problem_type: ProblemType) -> str:
    """Returns the reason why labels do not fit the problem type; empty if they do."""
    if len(labels) != size:
        return f"there are {len(labels) / max(size, 1):g} labels per example"
    if not np.issubdtype(labels.dtype, np.number):
        return f"the labels are not numbers (dtype {labels.dtype})"
    if not np.isfinite(labels).all():
        return "some labels are not finite numbers"
    if problem_type == "binary" and not np.isin(labels, (0, 1)).all():
        return "the problem is binary, and some labels are neither 0 nor 1"
    if problem_type == "multi-class" and not ((labels >= 0) & (labels % 1 == 0)).all():
        return "the problem is multi-class, and some labels are not class ids"
    return ""


def _answer(labels: Values, predictions: npt.NDArray[Any], problem_type: ProblemType) -> Values | str:
    """Returns the answers of a model, or the reason why they can't be judged."""
    if not np.issubdtype(predictions.dtype, np.number):
        return f"its predictions are not numbers (dtype {predictions.dtype})"
    values = predictions.astype(np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    shape = f"predictions of shape {[None, *values.shape[1:]]}"
    if problem_type == "multi-class":
        if values.ndim != 2:
            return f"a multi-class problem needs a probability for each class; the model has {shape}"
        if not _are_probabilities(values):
            return "its predictions are not probabilities, which add up to 1"
        ids = labels.astype(np.int64)
        inside = np.minimum(ids, values.shape[1] - 1)
        of_label = values[np.arange(len(ids)), inside]
        is_known = ids < values.shape[1]
        is_right = is_known & (values.argmax(axis=1) == ids)
        return np.stack([np.where(is_known, of_label, 0.0), is_right.astype(np.float64)], axis=1)
    if problem_type == "binary":
        if values.ndim == 2 and values.shape[1] == 2 and _are_probabilities(values):
            values = values[:, 1]
        if values.ndim != 1:
            return f"a binary problem needs one probability; the model has {shape}"
        if not ((values >= 0) & (values <= 1) | ~np.isfinite(values)).all():
            return "its predictions are not probabilities between 0 and 1"
    if values.ndim != 1:
        return f"a {problem_type} problem needs one number per example; the model has {shape}"
    return values[:, np.newaxis]


def _are_probabilities(values: Values) -> bool:
    """Returns True if all finite rows are probabilities; classes without interest may be left out."""
    values = values[np.isfinite(values).all(axis=1)]
    return bool((values >= 0).all() and (values.sum(axis=1) <= 1 + _MAX_SUM_ERROR).all())
