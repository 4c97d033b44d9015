"""Doubts about parts of the data, which a metric on all examples does not show.

A slice is a value of a category, or a quarter of the examples by a number. In each slice, the loss of a model
is compared with that of the best constant there: the excess. It is in units of the loss of a constant on all
examples, so that it does not depend on the scale of the label. Three things are doubted:

- The served model had another excess in the slice when it was pushed: the labels, or the values of a column,
  mean something else there now.
- The new model loses more there than the served one.
- The new model loses less than half of what the served one loses, which is better than a constant: it may
  know the label.

The intervals are corrected for the number of slices (Bonferroni).
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from components.evaluator.gate.intervals import variance_of_mean
from components.evaluator.gate.labelled_predictions import LabelledPredictions, Values, losses
from components.evaluator.gate.slice_columns import Codes, Numbers

MIN_EXAMPLES = 50
"""Number of examples below which a slice is left out."""

MARGIN_THEN = 0.1
"""Growth of the served model's excess, beyond the interval, that does not raise a doubt."""

MARGIN_OF_ALL = 0.02
"""The same for all examples together."""

MARGIN_NOW = 0.05
"""Excess of the new model over the served one, beyond the interval, that does not raise a doubt."""

MIN_GAIN = 0.5
"""Share of the served model's loss that a new model saves only if it knows the label."""

_NUM_NUMBERS = 5
_NUM_PARTS = 4
_MAX_SLICES = 200
_SHOWN = 3


@dataclass(frozen=True)
class Slice:
    """A part of the examples."""

    column: str | None = None
    value: str | None = None
    low: float | None = None  # Smallest number of the slice; None without a bound
    high: float | None = None  # Number below which the slice ends; None without a bound

    def __str__(self) -> str:
        if self.column is None:
            return "all examples"
        if self.value is not None:
            return f"{self.column} = {self.value!r}"
        parts = [] if self.low is None else [f"from {self.low:.5g}"]
        parts += [] if self.high is None else [f"below {self.high:.5g}"]
        return f"{self.column} {' and '.join(parts)}"

    def examples(self, labelled: LabelledPredictions) -> npt.NDArray[np.bool_]:
        """Returns True for the examples in the slice, `[n]`; False for all if there is no such column."""
        if self.column is None:
            return np.ones(len(labelled.labels), bool)
        column = labelled.columns.get(self.column)
        none: npt.NDArray[np.bool_] = np.zeros(len(labelled.labels), bool)
        if isinstance(column, Codes):
            names = column.names or ()
            return column.codes == names.index(self.value) if self.value in names else none
        if column is None or self.value is not None:
            return none
        inside: npt.NDArray[np.bool_] = np.isfinite(column)
        if self.low is not None:
            inside &= column >= self.low
        if self.high is not None:
            inside &= column < self.high
        return inside


ALL = Slice()


@dataclass(frozen=True)
class SliceExcess:
    slice: Slice
    num_examples: int
    # The model's loss minus that of the best constant there, divided by that of a constant on all
    # examples. Below 0 if the model has any skill.
    excess: float
    error: float  # Standard error of `excess`


def parse_excesses(items: Any) -> tuple[SliceExcess, ...]:
    return tuple(SliceExcess(**{**item, "slice": Slice(**item["slice"])}) for item in items)


def slice_excesses(labelled: LabelledPredictions, answers: Values) -> tuple[SliceExcess, ...]:
    """Returns the excess of a model on all examples and in each slice, the largest slices first."""
    unit, loss = _loss_of_constant(labelled), _losses(labelled, answers)
    slices = [ALL, *_slices(labelled, answers)]
    excesses = filter(None, (_excess(part, labelled, loss, unit) for part in slices))
    ordered = sorted(excesses, key=lambda part: (-part.num_examples, str(part.slice)))
    return tuple(ordered[:_MAX_SLICES])


def doubts_about_slices(
    labelled: LabelledPredictions,
    candidate: Values,
    baseline: Values,
    then: Sequence[SliceExcess],
    confidence: float,
) -> Iterator[str]:
    """Yields a doubt for each comparison that shows a difference."""
    unit = _loss_of_constant(labelled)
    mine, others = _losses(labelled, candidate), _losses(labelled, baseline)
    reach = _quantile(confidence, len(then))
    changed = []
    for earlier in then:
        now = _excess(earlier.slice, labelled, others, unit)
        if now is not None:
            grown = now.excess - earlier.excess
            least = grown - reach * math.hypot(now.error, earlier.error)
            if least > (MARGIN_OF_ALL if earlier.slice == ALL else MARGIN_THEN):
                changed.append((grown, now))
    if changed:
        yield (
            "the meaning of the new data has changed: the live model has lost more than chance in "
            f"{_listed(changed)}. Look at the labels and the columns there before you trust either model"
        )
    slices = list(_slices(labelled, candidate))
    reach = _quantile(confidence, len(slices))
    worse = []
    for part in slices:
        growth = _difference(part, labelled, mine - others, unit)
        if growth is not None and growth.excess - reach * growth.error > MARGIN_NOW:
            worse.append((growth.excess, growth))
    if worse:
        yield (
            f"the model is worse than the live model, by more than chance, in {_listed(worse)}. Look at the "
            "data there"
        )
    new, old = (float(np.average(part, weights=labelled.weights)) for part in (mine, others))
    gain = _difference(ALL, labelled, mine - others, old) if old < unit else None
    if gain is not None and gain.excess + _quantile(confidence, 1) * gain.error < -MIN_GAIN:
        yield (
            f"the model is too good: its loss is {new:.5g}, and that of the live model on the same "
            f"{gain.num_examples} examples {old:.5g}. Look for target leakage"
        )


def _slices(labelled: LabelledPredictions, answers: Values) -> Iterator[Slice]:
    """Yields the values of categories, and parts of the numbers that explain most of the answers."""
    explained = []
    for name, column in labelled.columns.items():
        if isinstance(column, Codes):
            yield from (Slice(name, value) for value in column.names or ())
            continue
        parts = _parts(name, column)
        if len(parts) > 1:
            means = [answers[part.examples(labelled), 0].mean() for part in parts]
            explained.append((float(np.var(means)), parts))
    explained.sort(key=lambda item: -item[0])
    for _, parts in explained[:_NUM_NUMBERS]:
        yield from parts


def _parts(name: str, column: Numbers) -> list[Slice]:
    present = column[np.isfinite(column)]
    if not len(present):
        return []
    bounds = np.unique(np.quantile(present, np.arange(1, _NUM_PARTS) / _NUM_PARTS))
    inner = [float(bound) for bound in bounds if bound > present.min()]
    return [Slice(name, None, low, high) for low, high in zip([None, *inner], [*inner, None], strict=True)]


def _excess(part: Slice, labelled: LabelledPredictions, loss: Values, unit: float) -> SliceExcess | None:
    """Returns the excess in a slice; None if it has too few examples."""
    index = np.flatnonzero(part.examples(labelled))
    taken = labelled.take(index)
    if len(index) < MIN_EXAMPLES or not taken.weights.sum() > 0:
        return None
    return _mean(part, loss[index] - _losses(taken, _constant(taken)), taken.weights, unit)


def _difference(
    part: Slice, labelled: LabelledPredictions, difference: Values, unit: float
) -> SliceExcess | None:
    """Returns the mean difference of two losses in a slice; None if it has too few examples."""
    index = np.flatnonzero(part.examples(labelled))
    if len(index) < MIN_EXAMPLES:
        return None
    return _mean(part, difference[index], labelled.weights[index], unit)


def _mean(part: Slice, values: Values, weights: Values, unit: float) -> SliceExcess | None:
    """Returns the mean of the values in units; None if it is not known."""
    if not (unit > 0 and weights.sum() > 0):
        return None
    mean = float(np.average(values, weights=weights))
    if not math.isfinite(mean):
        return None
    error = math.sqrt(variance_of_mean(values, weights))
    return SliceExcess(part, len(values), mean / unit, error / unit)


def _losses(labelled: LabelledPredictions, answers: Values) -> Values:
    """Returns the log loss, or the absolute error: a few large squares would hide all the others."""
    if labelled.problem_type == "regression":
        return np.abs(answers[:, 0] - labelled.labels)
    return losses(labelled, answers)


def _constant(labelled: LabelledPredictions) -> Values:
    """Returns the answers of the best constant on the same examples."""
    labels, weights = labelled.labels, labelled.weights
    if labelled.problem_type == "multi-class":
        ids = labels.astype(np.int64)
        shares = np.bincount(ids, weights) / weights.sum()
        return np.stack([shares[ids], np.zeros(len(ids))], axis=1)
    constant = np.average(labels, weights=weights)
    if labelled.problem_type == "regression":
        order = np.argsort(labels)
        sums = np.cumsum(weights[order])
        constant = labels[order][np.searchsorted(sums, sums[-1] / 2)]  # the median
    return np.full((len(labels), 1), constant)


def _loss_of_constant(labelled: LabelledPredictions) -> float:
    if not labelled.weights.sum() > 0:
        return 0.0
    return float(np.average(_losses(labelled, _constant(labelled)), weights=labelled.weights))


def _quantile(confidence: float, num_slices: int) -> float:
    return statistics.NormalDist().inv_cdf(1 - (1 - confidence) / 2 / max(1, num_slices))


def _listed(excesses: list[tuple[float, SliceExcess]]) -> str:
    excesses.sort(key=lambda item: -item[0])
    shown = [
        f"{excess.slice} (loss +{grown:.0%} of a constant's; {excess.num_examples} examples)"
        for grown, excess in excesses[:_SHOWN]
    ]
    more = f", and in {len(excesses) - _SHOWN} more slices" if len(excesses) > _SHOWN else ""
    return ", ".join(shown) + more
