"""Sums over examples for the plots of an evaluation; they have bounded size and can be added.

Probabilities are counted in 10,000 intervals and classes in a table, for any number of examples; for
regressions a random sample is kept.
"""

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from components.evaluator.gate.labelled_predictions import ProblemType
from components.tfx.decision_file import DEFAULT_THRESHOLD

Values: TypeAlias = npt.NDArray[np.float64]

NUM_BINS = 10_000
"""Number of intervals for probabilities."""

NUM_CONFIDENCE_BINS = 20
"""Number of intervals for the probability of the most probable class."""

MAX_SAMPLE = 2_000
"""Maximum size of a regression's sample."""


@dataclass(frozen=True)
class PredictionSums:
    problem_type: ProblemType | None = None  # None if nothing was counted
    num_examples: int = 0
    # Binary: weight by interval of the probability, `[2, NUM_BINS]`; row 1 has the examples with label 1.
    by_class: Values | None = None
    # Multi-class: weight by (label, most probable class).
    confusion: dict[tuple[int, int], float] = field(default_factory=dict)
    # Multi-class: by interval of the highest probability, its weighted sum, the weight of right
    # answers, and the weight, `[3, NUM_CONFIDENCE_BINS]`.
    confidence: Values | None = None
    # Regression: label, prediction and a random number of some examples, those with the lowest
    # random numbers, `[at most MAX_SAMPLE, 3]`.
    sample: Values | None = None
    squares: float = 0.0  # Classifications: sum of the squared weights

    @classmethod
    def from_batch(
        cls,
        labels: npt.NDArray[Any],
        predictions: npt.NDArray[Any],
        weights: Values,
        problem_type: ProblemType | None,
        threshold: float = DEFAULT_THRESHOLD,
    ) -> "PredictionSums":
        """Returns the sums of a batch; nothing if labels or predictions do not fit the problem type.

        Probabilities above the threshold are in other intervals than those below, see `threshold_bin`.
        """
        numbers = np.asarray(labels).reshape(-1)
        is_numeric = all(np.issubdtype(values.dtype, np.number) for values in (numbers, predictions))
        if problem_type is None or not is_numeric or len(numbers) != len(predictions):
            return cls()
        answers = predictions.astype(np.float64)
        if problem_type == "multi-class":
            return cls._count_classes(numbers, answers, weights)
        if answers.ndim == 2 and answers.shape[1] == 2 and problem_type == "binary":
            answers = answers[:, 1]
        if answers.ndim == 2 and answers.shape[1] == 1:
            answers = answers[:, 0]
        usable = answers.ndim == 1 and np.isfinite(answers).all() and np.isfinite(numbers).all()
        if not usable:
            return cls()
        if problem_type == "regression":
            return cls._sample_numbers(numbers.astype(np.float64), answers)
        if not ((answers >= 0) & (answers <= 1) & np.isin(numbers, (0, 1))).all():
            return cls()
        bins = np.minimum((answers * NUM_BINS).astype(np.int64), NUM_BINS - 1)
        cut = threshold_bin(threshold)
        bins = np.where(answers > threshold, np.maximum(bins, cut), np.minimum(bins, cut - 1))
        by_class = np.stack(
            [np.bincount(bins, weights * (numbers == label), minlength=NUM_BINS) for label in (0, 1)]
        )
        return cls("binary", len(numbers), by_class, squares=float(weights @ weights))

    @classmethod
    def _count_classes(cls, labels: npt.NDArray[Any], answers: Values, weights: Values) -> "PredictionSums":
        if answers.ndim != 2 or not np.isfinite(answers).all() or (labels < 0).any():
            return cls()
        chosen = answers.argmax(axis=1)
        ids = labels.astype(np.int64)
        pairs, index = np.unique(np.stack([ids, chosen], axis=1), axis=0, return_inverse=True)
        sums = np.bincount(index.reshape(-1), weights, minlength=len(pairs))
        confusion = {
            (int(label), int(answer)): float(weight)
            for (label, answer), weight in zip(pairs, sums, strict=True)
        }
        highest = answers.max(axis=1)
        bins = np.clip((highest * NUM_CONFIDENCE_BINS).astype(np.int64), 0, NUM_CONFIDENCE_BINS - 1)
        confidence = np.stack(
            [
                np.bincount(bins, part, minlength=NUM_CONFIDENCE_BINS)
                for part in (weights * highest, weights * (ids == chosen), weights)
            ]
        )
        return cls(
            "multi-class",
            len(ids),
            confusion=confusion,
            confidence=confidence,
            squares=float(weights @ weights),
        )

    @classmethod
    def _sample_numbers(cls, labels: Values, answers: Values) -> "PredictionSums":
        # The seed depends on the batch: the same examples give the same sample in each run.
        seed = zlib.crc32(labels.tobytes() + answers.tobytes())
        order = np.random.default_rng(seed).random(len(labels))
        sample = np.stack([labels, answers, order], axis=1)
        return cls("regression", len(labels), sample=_lowest(sample))

    def __add__(self, other: "PredictionSums") -> "PredictionSums":
        if self.problem_type is None or other.problem_type is None:
            return self if other.problem_type is None else other
        confusion = dict(self.confusion)
        for pair, weight in other.confusion.items():
            confusion[pair] = confusion.get(pair, 0.0) + weight
        samples = [part for part in (self.sample, other.sample) if part is not None]
        return PredictionSums(
            self.problem_type,
            self.num_examples + other.num_examples,
            _sum(self.by_class, other.by_class),
            confusion,
            _sum(self.confidence, other.confidence),
            _lowest(np.concatenate(samples)) if samples else None,
            self.squares + other.squares,
        )


def threshold_bin(threshold: float) -> int:
    """Returns the first interval of probabilities above a threshold."""
    return min(max(1, math.ceil(threshold * NUM_BINS)), NUM_BINS - 1)


def add_by_model(parts: Iterable[dict[str, PredictionSums]]) -> dict[str, PredictionSums]:
    total: dict[str, PredictionSums] = {}
    for part in parts:
        for name, sums in part.items():
            total[name] = total.get(name, PredictionSums()) + sums
    return total


def _sum(first: Values | None, second: Values | None) -> Values | None:
    if first is None or second is None:
        return first if second is None else second
    return first + second


def _lowest(sample: Values) -> Values:
    """Returns the rows with the lowest random numbers, sorted by them."""
    return sample[np.argsort(sample[:, 2], kind="stable")[:MAX_SAMPLE]]
