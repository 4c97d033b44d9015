"""One check of a model, and its description in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OF_CLASS = ("precision", "recall", "f1_score", "auc")
"""Metrics whose name may contain a class: `recall@late`."""

Against = Literal["trivial", "baseline", "baseline when pushed"]


@dataclass(frozen=True)
class Check:
    """One check of a model.

    Attributes:
        metric: Name of the metric.
        against: Subject of the comparison: `trivial`, `baseline` or `baseline when pushed`.
        value: Value of the candidate; None if it is not a number. For `baseline when pushed`, the value of
            the baseline now.
        reference: Value of the trivial model or the baseline on the same examples. For `baseline when
            pushed`, the value of the baseline at that time.
        bound: Limit for the value: the reference, for a baseline with the tolerance.
        higher_is_better: True if higher values of the metric are better.
        difference: Value minus reference.
        low: Lower end of the confidence interval of the difference; None if it is infinite.
        high: Upper end of the interval; None if it is infinite.
        confidence: Confidence level of the interval.
        num_examples: Number of examples that were compared.
        passed: True if the model passed.
        message: The outcome in words.
    """

    metric: str
    against: Against
    value: float | None
    reference: float | None
    bound: float | None
    higher_is_better: bool
    difference: float | None
    low: float | None
    high: float | None
    confidence: float
    num_examples: int
    passed: bool
    message: str


def metric_in_words(name: str, values: Mapping[str, object]) -> str:
    """Returns a metric with its class and slice, such as `recall of 'late' where city = 'Oslo'`."""
    base, _, argument = name.partition("@")
    subject = f"{base} of {argument!r}" if argument and base in OF_CLASS else name
    return f"{subject} where {slice_in_words(values)}" if values else subject


def slice_in_words(values: Mapping[str, object]) -> str:
    return " and ".join(f"{column} = {values[column]!r}" for column in sorted(values))


def describe(check: Check, fewest: int) -> str:
    """Returns the outcome of a check in words; `fewest` is the size of the rarer of two classes."""
    if check.value is None:
        return f"{check.metric} is not a number: the model predicts NaN or infinity, or a class is missing"
    whom = "the trivial model's" if check.against == "trivial" else "the baseline's"
    sign = 1 if check.higher_is_better else -1
    is_better = check.difference is not None and sign * check.difference > 0
    if check.against == "trivial":
        nearest = check.low if check.higher_is_better else check.high
        is_clear = nearest is not None and sign * nearest > 0
        if check.passed:
            relation = "is better than" if is_clear else "is not worse than"
        elif is_better:
            relation = "is better by less than the interval than"
        else:
            relation = "is not better than"
    else:
        relation = "is not worse than" if check.passed else "is worse than"
    text = f"{check.metric} {check.value:.5g} {relation} {whom} {number(check.reference)}"
    text += f" (difference {interval_text(check)}"
    if check.against == "baseline" and check.bound != check.reference:
        text += f"; the bound is {number(check.bound)}"
    text += f"; {check.num_examples} examples)"
    if check.against == "trivial" and not check.passed and is_better:
        rarer = "" if fewest == check.num_examples else f", {fewest} of the rarer class,"
        text += (
            f": too few examples ({check.num_examples}{rarer.rstrip(',')}) to tell the model from a constant"
        )
    return text


def interval_text(check: Check) -> str:
    """Returns difference and interval, such as `+0.12, 95 % interval +0.1 to +0.14`."""
    ends = ["no bound" if end is None else f"{end:+.4g}" for end in (check.low, check.high)]
    return f"{number(check.difference, '+.4g')}, {100 * check.confidence:g} % interval {' to '.join(ends)}"


def number(value: float | None, form: str = ".5g") -> str:
    return "no number" if value is None else format(value, form)
