"""Doubts about parts of the data, which a metric on all examples does not show.

A slice is a value of a category, or a quarter of the examples by a number. In each one, the loss of a model
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

from components.evaluator.gate.labelled_predictions import LabelledPredictions, Values, losses
from components.evaluator.gate.slice_columns import Codes, Numbers

MIN_EXAMPLES = 50
"""Number of examples below which a slice is left out."""

MARGIN_THEN = 0.1
"""Growth of the served model's excess that is no doubt, beyond the interval."""

MARGIN_OF_ALL = 0.02
"""The same for all examples together."""

MARGIN_NOW = 0.05
"""Excess of the new model over the served one that is no doubt, beyond the interval."""

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

    def examples(self, given: LabelledPredictions) -> npt.NDArray[np.bool_]:
        """Returns True for the examples in the slice, `[n]`; none if there is no such column."""
        if self.column is None:
            return np.ones(len(given.labels), bool)
        column = given.columns.get(self.column)
        none: npt.NDArray[np.bool_] = np.zeros(len(given.labels), bool)
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
"""All examples."""


@dataclass(frozen=True)
class SliceExcess:
    """The excess of a model in a slice."""

    slice: Slice
    num_examples: int
    # The model's loss minus that of the best constant there, divided by that of a constant on all
    # examples. Below 0 if the model has any skill.
    excess: float
    error: float  # Standard error of `excess`


def excesses_from(items: Any) -> tuple[SliceExcess, ...]:
    """Returns excesses from their JSON form."""
    return tuple(SliceExcess(**{**item, "slice": Slice(**item["slice"])}) for item in items)


def slice_excesses(given: LabelledPredictions, answers: Values) -> tuple[SliceExcess, ...]:
    """Returns the excess of a model on all examples and in each slice, the largest slices first."""
    unit, loss = _loss_of_constant(given), _losses(given, answers)
    slices = [ALL, *_slices(given, answers)]
    found = filter(None, (_excess(one, given, loss, unit) for one in slices))
    ordered = sorted(found, key=lambda one: (-one.num_examples, str(one.slice)))
    return tuple(ordered[:_MAX_SLICES])


def doubts_about_slices(
    given: LabelledPredictions,
    candidate: Values,
    baseline: Values,
    then: Sequence[SliceExcess],
    confidence: float,
) -> Iterator[str]:
    """Yields a doubt for each comparison that finds one."""
    unit = _loss_of_constant(given)
    mine, others = _losses(given, candidate), _losses(given, baseline)
    reach = _quantile(confidence, len(then))
    changed = []
    for before in then:
        now = _excess(before.slice, given, others, unit)
        if now is not None:
            grown = now.excess - before.excess
            least = grown - reach * math.hypot(now.error, before.error)
            if least > (MARGIN_OF_ALL if before.slice == ALL else MARGIN_THEN):
                changed.append((grown, now))
    if changed:
        yield (
            f"the new data differ in what they mean: the served model has lost more than chance in "
            f"{_listed(changed)}. Look at the labels and the columns there before you trust either model"
        )
    slices = list(_slices(given, candidate))
    reach = _quantile(confidence, len(slices))
    worse = []
    for one in slices:
        found = _difference(one, given, mine - others, unit)
        if found is not None and found.excess - reach * found.error > MARGIN_NOW:
            worse.append((found.excess, found))
    if worse:
        yield (
            f"the model is worse than the served one, by more than chance, in {_listed(worse)}. Look at "
            "the data there"
        )
    new, old = (float(np.average(one, weights=given.weights)) for one in (mine, others))
    gain = _difference(ALL, given, mine - others, old) if old < unit else None
    if gain is not None and gain.excess + _quantile(confidence, 1) * gain.error < -MIN_GAIN:
        yield (
            f"the model is too good: its loss is {new:.5g}, and that of the served one on the same "
            f"{gain.num_examples} examples {old:.5g}. Look for a column that tells the label"
        )


def _slices(given: LabelledPredictions, answers: Values) -> Iterator[Slice]:
    """Yields the values of categories, and parts of the numbers that explain most of the answers."""
    explained = []
    for name, column in given.columns.items():
        if isinstance(column, Codes):
            yield from (Slice(name, value) for value in column.names or ())
            continue
        parts = _parts(name, column)
        if len(parts) > 1:
            means = [answers[one.examples(given), 0].mean() for one in parts]
            explained.append((float(np.var(means)), parts))
    explained.sort(key=lambda item: -item[0])
    for _, parts in explained[:_NUM_NUMBERS]:
        yield from parts


def _parts(name: str, column: Numbers) -> list[Slice]:
    known = column[np.isfinite(column)]
    if not len(known):
        return []
    bounds = np.unique(np.quantile(known, np.arange(1, _NUM_PARTS) / _NUM_PARTS))
    inner = [float(one) for one in bounds if one > known.min()]
    return [
        Slice(name, None, low, high)
        for low, high in zip([None, *inner], [*inner, None], strict=True)
    ]


def _excess(
    one: Slice, given: LabelledPredictions, loss: Values, unit: float
) -> SliceExcess | None:
    """Returns the excess in a slice; None if it has too few examples."""
    index = np.flatnonzero(one.examples(given))
    part = given.take(index)
    if len(index) < MIN_EXAMPLES or not part.weights.sum() > 0:
        return None
    return _mean(one, loss[index] - _losses(part, _constant(part)), part.weights, unit)


def _difference(
    one: Slice, given: LabelledPredictions, difference: Values, unit: float
) -> SliceExcess | None:
    """Returns the mean difference of two losses in a slice; None if it has too few examples."""
    index = np.flatnonzero(one.examples(given))
    if len(index) < MIN_EXAMPLES:
        return None
    return _mean(one, difference[index], given.weights[index], unit)


def _mean(one: Slice, values: Values, weights: Values, unit: float) -> SliceExcess | None:
    """Returns the mean of the values in units; None if it is not known."""
    if not (unit > 0 and weights.sum() > 0):
        return None
    mean = float(np.average(values, weights=weights))
    deviations = weights * (values - mean)
    count = len(values)
    variance = float(deviations @ deviations) / float(weights.sum()) ** 2 * count / (count - 1)
    if not math.isfinite(mean):
        return None
    return SliceExcess(one, count, mean / unit, math.sqrt(variance) / unit)


def _losses(given: LabelledPredictions, answers: Values) -> Values:
    """Returns the log loss, or the absolute error: a few large squares would hide all the others."""
    if given.problem_type == "regression":
        return np.abs(answers[:, 0] - given.labels)
    return losses(given, answers)


def _constant(given: LabelledPredictions) -> Values:
    """Returns the answers of the best constant on the same examples."""
    labels, weights = given.labels, given.weights
    if given.problem_type == "multi-class":
        ids = labels.astype(np.int64)
        shares = np.bincount(ids, weights) / weights.sum()
        return np.stack([shares[ids], np.zeros(len(ids))], axis=1)
    constant = np.average(labels, weights=weights)
    if given.problem_type == "regression":
        order = np.argsort(labels)
        sums = np.cumsum(weights[order])
        constant = labels[order][np.searchsorted(sums, sums[-1] / 2)]  # the median
    return np.full((len(labels), 1), constant)


def _loss_of_constant(given: LabelledPredictions) -> float:
    if not given.weights.sum() > 0:
        return 0.0
    return float(np.average(_losses(given, _constant(given)), weights=given.weights))


def _quantile(confidence: float, num_slices: int) -> float:
    return statistics.NormalDist().inv_cdf(1 - (1 - confidence) / 2 / max(1, num_slices))


def _listed(found: list[tuple[float, SliceExcess]]) -> str:
    found.sort(key=lambda item: -item[0])
    shown = [
        f"{one.slice} (loss +{grown:.0%} of a constant's; {one.num_examples} examples)"
        for grown, one in found[:_SHOWN]
    ]
    more = f", and in {len(found) - _SHOWN} more slices" if len(found) > _SHOWN else ""
    return ", ".join(shown) + more
