"""Confidence intervals of the difference between two models on the same examples.

All of them are analytic: they take one pass over the examples (the AUC a sort), and give the same numbers
each time. Differences are paired: answers that both models get right or wrong cancel out, so the
interval of a difference is much narrower than those of the two values. Quantiles are from Student's
distribution. With fewer than two examples (for the AUC: of a class) an interval is infinite.
"""

import math
import statistics
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """A difference of a metric, first model minus second."""

    value: float
    low: float  # Lower end of its confidence interval; minus infinity with too few examples
    high: float  # Upper end; infinity with too few examples


def mean_difference(first: Values, second: Values, weights: Values, confidence: float) -> Difference:
    """Returns the difference of the means of a value per example, such as the log loss.

    Source: the paired t interval; with weights, the linearised variance of a ratio of sums.
    """
    return _around(_mean(first - second, weights), first - second, weights, confidence)


def rate_difference(first: Values, second: Values, weights: Values, confidence: float) -> Difference:
    """Returns the difference of two shares of right answers, given as 1 or 0 for each example.

    Two examples are added, one that only the first model gets right and one that only the second does:
    without them the interval would be a point if the answers of the models never differ.

    Source: the adjusted Wald interval for paired proportions of Bonett and Price (2012).
    """
    difference = first - second
    if not len(difference):
        return Difference(math.nan, -math.inf, math.inf)
    usual = float(weights.mean())
    padded = np.concatenate([difference, [1.0, -1.0]])
    padded_weights = np.concatenate([weights, [usual, usual]])
    around = _around(_mean(padded, padded_weights), padded, padded_weights, confidence)
    return Difference(_mean(difference, weights), around.low, around.high)


def wilson_interval(successes: float, total: float, confidence: float) -> tuple[float, float]:
    """Returns the interval of a share, which lies within 0 and 1 even with few examples or none.

    Source: the score interval of Wilson (1927).
    """
    if total <= 0:
        return 0.0, 1.0
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = successes / total, z * z / total
    center = (share + square / 2) / (1 + square)
    reach = z / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return max(0.0, center - reach), min(1.0, center + reach)


def root_mean_difference(first: Values, second: Values, weights: Values, confidence: float) -> Difference:
    """Returns the difference of the roots of two means, such as of squared errors.

    Source: the delta method.
    """
    roots = [math.sqrt(_mean(squares, weights)) for squares in (first, second)]
    # The derivative of the root; without any error nothing varies.
    parts = [
        squares / (2 * root) if root else squares
        for squares, root in zip((first, second), roots, strict=True)
    ]
    return _around(roots[0] - roots[1], parts[0] - parts[1], weights, confidence)


def auc(labels: Values, scores: Values, weights: Values) -> float:
    """Returns the exact area under the ROC curve; ties count half. NaN if a class is missing."""
    positive, _ = _placements(labels, scores, weights)
    return _mean(positive, weights[labels > 0.5])


def auc_difference(
    labels: Values, first: Values, second: Values | None, weights: Values, confidence: float
) -> Difference:
    """Returns the difference of two AUCs, or of one AUC and that of a constant, 0.5.

    Against the constant, the standard error is at least that of a share in which one of `k + 2` is
    wrong, where `k` is the size of the smaller class: otherwise three positives above all negatives
    would look certain.

    Source: the paired comparison of DeLong, DeLong and Clarke-Pearson (1988), here with weights.
    """
    is_positive = labels > 0.5
    sizes = int(is_positive.sum()), int((~is_positive).sum())
    smaller = min(sizes)
    parts = list(_placements(labels, first, weights))
    reference = 0.5
    if second is not None:
        others = _placements(labels, second, weights)
        reference = _mean(others[0], weights[is_positive])
        parts = [part - other for part, other in zip(parts, others, strict=True)]
        value = _mean(parts[0], weights[is_positive])
    else:
        value = _mean(parts[0], weights[is_positive]) - reference
    if smaller < 2:
        return Difference(value, -math.inf, math.inf)
    variance = variance_of_mean(parts[0], weights[is_positive]) + variance_of_mean(
        parts[1], weights[~is_positive]
    )
    if second is None:
        share = 1 / (smaller + 2)
        variance = max(variance, share * (1 - share) / (smaller + 2))
    reach = _quantile(confidence, smaller - 1) * math.sqrt(variance)
    return Difference(value, value - reach, value + reach)


def _placements(labels: Values, scores: Values, weights: Values) -> tuple[Values, Values]:
    """Returns, for each positive and each negative, the share of the other class that is ranked correctly."""
    is_positive = labels > 0.5
    positive, negative = scores[is_positive], scores[~is_positive]
    above = _share_below(positive, negative, weights[~is_positive])
    below = 1.0 - _share_below(negative, positive, weights[is_positive])
    return above, below


def _share_below(scores: Values, others: Values, weights: Values) -> Values:
    """Returns the share of the others' weight below each score; ties count half."""
    order = np.argsort(others, kind="stable")
    ordered = others[order]
    totals = np.concatenate([[0.0], np.cumsum(weights[order])])
    if not totals[-1] > 0:
        return np.full(len(scores), math.nan)
    below = totals[np.searchsorted(ordered, scores, side="left")]
    upto = totals[np.searchsorted(ordered, scores, side="right")]
    share: Values = (below + upto) / (2 * totals[-1])
    return share


def _mean(values: Values, weights: Values) -> float:
    total = float(weights.sum())
    return float(values @ weights) / total if total > 0 else math.nan


def variance_of_mean(values: Values, weights: Values) -> float:
    """Returns the variance of a weighted mean; with equal weights, the sample variance over n."""
    count = len(values)
    deviations = weights * (values - _mean(values, weights))
    return float(deviations @ deviations) / float(weights.sum()) ** 2 * count / (count - 1)


def _around(center: float, parts: Values, weights: Values, confidence: float) -> Difference:
    """Returns the interval of a mean of parts, around the center."""
    if len(parts) < 2 or not weights.sum() > 0:
        return Difference(center, -math.inf, math.inf)
    reach = _quantile(confidence, len(parts) - 1) * math.sqrt(variance_of_mean(parts, weights))
    return Difference(center, center - reach, center + reach)


def finite(value: float) -> float | None:
    """Returns a number for JSON: None for infinity and NaN."""
    return float(value) if math.isfinite(value) else None


def _quantile(confidence: float, degrees_of_freedom: int) -> float:
    from scipy import special  # `scipy.stats` takes a second to import

    return float(special.stdtrit(degrees_of_freedom, (1 + confidence) / 2))
