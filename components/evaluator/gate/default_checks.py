"""The default checks: is a model better than the trivial one, and no worse than the baseline?

The trivial model answers with the prior, the majority class or the mean of the labels. Both checks
compare a metric and the loss, by the confidence interval of the difference on the same examples.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from components.evaluator.gate import intervals
from components.evaluator.gate.check import Check, describe, number
from components.evaluator.gate.intervals import Difference, finite
from components.evaluator.gate.labelled_predictions import (
    LabelledPredictions,
    LabelTally,
    ProblemType,
    Values,
    losses,
    trivial_answers,
)
from components.evaluator.gate.metric_intervals import Interval, metric_intervals
from components.evaluator.gate.slice_doubts import (
    ALL,
    SliceExcess,
    doubts_about_slices,
    slice_excesses,
)
from components.evaluator.gate.verdict import Verdict

METRICS: dict[ProblemType, tuple[str, str]] = {
    "binary": ("auc", "binary_crossentropy"),
    "multi-class": ("sparse_categorical_accuracy", "sparse_categorical_crossentropy"),
    "regression": ("root_mean_squared_error", "mean_squared_error"),
}
"""The metric and the loss of each problem type, by the names in TFMA and Keras."""

_ACCURACY = "sparse_categorical_accuracy"
_HIGHER_IS_BETTER = ("auc", _ACCURACY)
_PROBLEM_TYPES = (None, *METRICS)


@dataclass(frozen=True)
class ValueThen:
    """A metric of the baseline when it was pushed, on the examples of that time."""

    metric: str
    value: float
    trivial: float
    interval: Interval = (None, None)  # Confidence interval of `value`; None for an end that is not known


@dataclass(frozen=True)
class DefaultChecks:
    """Settings of the default checks.

    Attributes:
        problem_type: `binary`, `multi-class` or `regression`; None reads it from the predictions of
            a canned head.
        fallback: Problem type if it is neither set nor known from the predictions; None skips the checks.
        confidence: Confidence level of the two-sided intervals, above 0.5 and below 1.
        tolerance: Allowed loss of quality beyond the interval, as a share of the baseline's lead over the
            trivial model. Two trainings on the same data differ by chance, which the interval does not
            cover: with very many examples and no tolerance, half of all sound models would be rejected.
        baseline_then: Metrics of the baseline when it was pushed, the metric first, then the loss. The
            baseline must have kept a share of its skill on the new examples, since damaged labels make
            both models look equally bad. None skips this check, and the doubt about the new examples.
        min_skill_kept: Share of its skill that the baseline must have kept. The skill is the share of the
            way from the trivial model to a perfect one.
        doubts: `hold` holds a model that passes but is doubted, `warn` lets it pass.
        known_doubts: Doubts that were found before the evaluation, one sentence each.
        accepted: Columns that a model may rely on entirely, see `leak_doubts`.
        categories: Columns whose values divide the examples into slices, for the doubts.
        numbers: Columns whose quantiles do.
        slices_then: Excesses of the baseline in the slices of the data when it was pushed.
    """

    problem_type: ProblemType | None = None
    fallback: ProblemType | None = None
    confidence: float = 0.95
    tolerance: float = 0.05
    baseline_then: tuple[ValueThen, ...] | None = None
    min_skill_kept: float = 0.7
    doubts: Literal["hold", "warn"] = "hold"
    known_doubts: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    slices_then: tuple[SliceExcess, ...] = ()

    def __post_init__(self) -> None:
        for name in ("problem_type", "fallback"):
            if getattr(self, name) not in _PROBLEM_TYPES:
                raise ValueError(
                    f"{name} must be one of {', '.join(METRICS)}, or None. "
                    f"Received: {name}={getattr(self, name)!r}"
                )
        if not 0.5 < self.confidence < 1:
            raise ValueError(
                "confidence must be above 0.5 and below 1, such as 0.95. "
                f"Received: confidence={self.confidence!r}"
            )
        if self.doubts not in ("hold", "warn"):
            raise ValueError(f"doubts must be 'hold' or 'warn'. Received: doubts={self.doubts!r}")
        for name in ("tolerance", "min_skill_kept"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1. Received: {name}={getattr(self, name)!r}"
                )

    def to_json(self) -> str:
        """Returns the settings as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "DefaultChecks | None":
        """Returns the settings from JSON; None if there are none."""
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_json(text) if text else None


def run_checks(
    labelled: LabelledPredictions,
    candidate: str,
    baseline: str | None,
    tally: LabelTally,
    settings: DefaultChecks,
) -> Verdict:
    """Returns the outcome of the default checks: a verdict without TFMA's results.

    The trivial model is based on `tally`, or on the labels of `labelled` if its weight is 0.
    """
    labelled = labelled.counting()
    if not len(labelled.weights):
        reason = "the default checks: there are no examples"
        return Verdict(not_checked=(reason,), doubts=settings.known_doubts)
    if candidate in labelled.unusable or labelled.problem_type is None:
        reason = labelled.unusable.get(candidate, "its problem type is not known")
        reason = f"the model against the trivial one and the baseline: {reason}"
        return Verdict(not_checked=(reason,), doubts=settings.known_doubts)
    if not tally.weight > 0:
        tally = LabelTally.from_labels(labelled.labels, labelled.weights, labelled.problem_type)
    metrics = METRICS[labelled.problem_type]
    builder = _CheckBuilder(labelled, metrics, candidate, trivial_answers(tally, labelled), settings)
    checks = list(builder.against_trivial())
    failures: list[str] = []
    doubts = list(settings.known_doubts)
    if baseline is not None and baseline in labelled.unusable:
        failures = [
            "the model cannot be compared with the live model, which predicts something else: for the live "
            f"model, {labelled.unusable[baseline]}. Use another root for another kind of model."
        ]
    elif baseline is not None:
        checks += builder.against_baseline(baseline)
        checks += builder.against_itself(baseline)
        meaning = list(builder.doubts_about_meaning(baseline))
        then = [excess for excess in settings.slices_then if not (meaning and excess.slice == ALL)]
        answers = labelled.answers[candidate], labelled.answers[baseline]
        doubts += [*meaning, *doubts_about_slices(labelled, *answers, then, settings.confidence)]
    return Verdict(
        failures=failures,
        checks=tuple(checks),
        intervals=builder.intervals(labelled.answers[candidate]),
        baseline_intervals=(
            builder.intervals(labelled.answers[baseline])
            if baseline is not None and baseline in labelled.answers
            else {}
        ),
        doubts=tuple(doubts),
        excesses=slice_excesses(labelled, labelled.answers[candidate]),
    )


class _CheckBuilder:
    def __init__(
        self,
        labelled: LabelledPredictions,
        metrics: tuple[str, ...],
        candidate: str,
        trivial: Values,
        settings: DefaultChecks,
    ) -> None:
        self._labelled = labelled
        self._metrics = metrics
        self._candidate = labelled.answers[candidate]
        self._trivial = trivial
        self._settings = settings

    def intervals(self, answers: Values) -> dict[str, Interval]:
        return metric_intervals(self._labelled, answers, self._settings.confidence)

    def against_trivial(self) -> Iterator[Check]:
        for metric in self._metrics:
            reference = self._value(metric, self._trivial)
            yield self._check(metric, "trivial", reference, reference, self._trivial)

    def against_baseline(self, name: str) -> Iterator[Check]:
        answers = self._labelled.answers[name]
        for metric in self._metrics:
            reference = self._value(metric, answers)
            sign = _sign(metric)
            gain = sign * (reference - self._value(metric, self._trivial))
            allowed = self._settings.tolerance * gain if gain > 0 else 0.0
            yield self._check(metric, "baseline", reference, reference - sign * allowed, answers)

    def against_itself(self, name: str) -> Iterator[Check]:
        """Yields the check that the baseline kept its skill; nothing without a known, positive skill."""
        metric, settings = self._metrics[0], self._settings
        records = [record for record in settings.baseline_then or () if record.metric == metric]
        if not records:
            return
        then = records[0].value
        asked = settings.min_skill_kept * _skill(metric, then, records[0].trivial)
        answers = self._labelled.answers[name]
        now, trivial = self._value(metric, answers), self._value(metric, self._trivial)
        if not (asked > 0 and math.isfinite(now)):
            return
        low, high = self.intervals(answers)[metric]
        bound = trivial + asked * (_perfect(metric) - trivial)
        best = high if metric in _HIGHER_IS_BETTER else low
        passed = best is None or _sign(metric) * (best - bound) >= 0
        kept = "has kept enough of" if passed else "has lost too much of"
        message = (
            f"the live model {kept} its {metric}: {then:.5g} when it was pushed, {now:.5g} on these data "
            f"({100 * settings.confidence:g} % interval {number(low)} to {number(high)}; the bound is "
            f"{bound:.5g}; {len(self._labelled.labels)} examples)"
        )
        if not passed:
            message += (
                ". The labels may be damaged; if the data have really changed, evaluator.min_skill_kept = 0 "
                "lets a new model pass"
            )
        yield Check(
            metric,
            "baseline when pushed",
            now,
            then,
            finite(bound),
            _sign(metric) > 0,
            None,
            low,
            high,
            settings.confidence,
            len(self._labelled.labels),
            passed,
            message,
        )

    def doubts_about_meaning(self, name: str) -> Iterator[str]:
        """Yields a doubt if the baseline has lost more skill than chance and the tolerance allow."""
        answers = self._labelled.answers[name]
        now = self.intervals(answers)
        lost = [
            f"{then.metric} was {then.value:.5g} and is {self._value(then.metric, answers):.5g}"
            for then in self._settings.baseline_then or ()
            if then.metric in self._metrics and self._has_lost(then, answers, now[then.metric])
        ]
        if lost:
            yield (
                f"the meaning of the new data has changed: the live model's {' and its '.join(lost)}, which "
                f"is more than chance ({len(self._labelled.labels)} examples). Look at the labels before you "
                "trust either model"
            )

    def _has_lost(self, then: ValueThen, answers: Values, interval: Interval) -> bool:
        """Returns True if a loss of skill is beyond both intervals together, and the tolerance."""
        metric = then.metric
        trivial = self._value(metric, self._trivial)
        old_skill = _skill(metric, then.value, then.trivial)
        lost = old_skill - _skill(metric, self._value(metric, answers), trivial)
        at_worst = then.interval[0] if _sign(metric) > 0 else then.interval[1]
        at_best = interval[1] if _sign(metric) > 0 else interval[0]
        if old_skill <= 0 or at_worst is None or at_best is None or not math.isfinite(lost):
            return False
        reach = math.hypot(
            old_skill - _skill(metric, at_worst, then.trivial),
            old_skill - lost - _skill(metric, at_best, trivial),
        )
        return lost - reach > self._settings.tolerance * old_skill

    def _check(
        self,
        metric: str,
        against: Literal["trivial", "baseline"],
        reference: float,
        bound: float,
        answers: Values,
    ) -> Check:
        value, sign = self._value(metric, self._candidate), _sign(metric)
        difference = self._difference(metric, answers, is_trivial=against == "trivial")
        worst, best = sorted((sign * difference.low, sign * difference.high))
        if not math.isfinite(value):
            passed = False
        elif against == "trivial":
            # If one class has nearly all examples, it is the most probable one for any model, however good;
            # the loss shows the difference.
            passed = worst > 0 or (metric == _ACCURACY and best >= 0)
        else:  # a finite value passes against a reference that is not finite
            passed = not math.isfinite(reference) or best >= sign * (bound - reference)
        check = Check(
            metric,
            against,
            finite(value),
            finite(reference),
            finite(bound),
            sign > 0,
            finite(difference.value),
            finite(difference.low),
            finite(difference.high),
            self._settings.confidence,
            len(self._labelled.labels),
            passed,
            "",
        )
        return replace(check, message=describe(check, self._fewest()))

    def _fewest(self) -> int:
        """Returns the number of examples that limits the precision."""
        if self._labelled.problem_type != "binary":
            return len(self._labelled.labels)
        positive = int((self._labelled.labels > 0.5).sum())
        return min(positive, len(self._labelled.labels) - positive)

    def _value(self, metric: str, answers: Values) -> float:
        weights = self._labelled.weights
        if metric == "auc":
            return intervals.auc(self._labelled.labels, answers[:, 0], weights)
        if metric == _ACCURACY:
            return float(np.average(answers[:, 1], weights=weights))
        loss = float(np.average(losses(self._labelled, answers), weights=weights))
        return math.sqrt(loss) if metric == "root_mean_squared_error" else loss

    def _difference(self, metric: str, answers: Values, is_trivial: bool) -> Difference:
        labelled, mine, confidence = self._labelled, self._candidate, self._settings.confidence
        if metric == "auc":
            other = None if is_trivial else answers[:, 0]
            return intervals.auc_difference(labelled.labels, mine[:, 0], other, labelled.weights, confidence)
        if metric == _ACCURACY:
            return intervals.rate_difference(mine[:, 1], answers[:, 1], labelled.weights, confidence)
        between = (
            intervals.root_mean_difference
            if metric == "root_mean_squared_error"
            else intervals.mean_difference
        )
        return between(losses(labelled, mine), losses(labelled, answers), labelled.weights, confidence)


def _perfect(metric: str) -> float:
    return 1.0 if metric in _HIGHER_IS_BETTER else 0.0


def _skill(metric: str, value: float, trivial: float) -> float:
    """Returns the share of the way from the trivial model's value to a perfect one."""
    way = _perfect(metric) - trivial
    return (value - trivial) / way if way else 0.0


def _sign(metric: str) -> int:
    return 1 if metric in _HIGHER_IS_BETTER else -1
