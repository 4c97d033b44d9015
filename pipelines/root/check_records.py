"""The checks of a run's model in one form: the default checks and the user's thresholds."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from components.evaluator.gate.check import Check, metric_in_words
from components.evaluator.gate.metric_intervals import Interval
from pipelines.config.evaluator import ThresholdConfig
from pipelines.config.metrics import metric_of

OVERALL = "Overall"
"""TFMA's name of the slice of all rows."""

Metrics = Mapping[str, float | None]

CheckRecord = dict[str, Any]
"""The fields of a `Check`; `against` may also be `lower`, `upper` or `max_regression`.

The bound of a slice has its values as `slice`.
`low` and `high` of a user's threshold are the interval of the value itself, and for `max_regression` the
interval of the difference; None where it was not computed.
"""

_AGAINST = {"trivial": "trivial model", "baseline": "baseline"}


def check_records(
    checks: Iterable[Check],
    thresholds: Iterable[ThresholdConfig],
    metrics: Mapping[str, Metrics],
    baseline_metrics: Mapping[str, Metrics],
    intervals: Mapping[str, Mapping[str, Interval]],
) -> tuple[CheckRecord, ...]:
    """Returns all checks of a model, the default ones first.

    metrics, baseline_metrics, intervals: Values by the name of the slice; that of all rows is `OVERALL`.
    """
    made = tuple(checks)
    records = [asdict(check) for check in made]
    for bound in thresholds:
        slice_name = _slice_name(bound.slice_)
        is_sliced = {"slice": bound.slice_} if bound.slice_ else {}
        value = metrics.get(slice_name, {}).get(bound.metric)
        interval = intervals.get(slice_name, {}).get(bound.metric, (None, None))
        for kind, limit in (("lower", bound.lower), ("upper", bound.upper)):
            if limit is not None:
                passed = value is not None and (value >= limit if kind == "lower" else value <= limit)
                records.append(
                    _record(bound.metric, kind, value, limit, kind == "lower", passed)
                    | {"low": interval[0], "high": interval[1], **is_sliced}
                )
        reference = baseline_metrics.get(slice_name, {}).get(bound.metric)
        if bound.max_regression is not None and reference is not None:
            higher = bool(metric_of(bound.metric).higher_is_better)
            limit = reference + (-bound.max_regression if higher else bound.max_regression)
            passed = value is not None and (value >= limit if higher else value <= limit)
            record = _record(bound.metric, "max_regression", value, limit, higher, passed)
            record["reference"] = reference
            record["difference"] = None if value is None else value - reference
            for check in made:
                if (check.metric, check.against) == (bound.metric, "baseline") and not is_sliced:
                    record |= {"low": check.low, "high": check.high}
            records.append(record | is_sliced)
    return tuple(records)


def _slice_name(values: Mapping[str, str]) -> str:
    """Returns TFMA's name of a slice."""
    if not values:
        return OVERALL
    return f"{'_X_'.join(sorted(values))}:{'_X_'.join(values[column] for column in sorted(values))}"


def subject(check: CheckRecord) -> str:
    """Returns the metric of a check in words, with its class and slice."""
    return metric_in_words(check["metric"], check.get("slice", {}))


def check_line(check: CheckRecord) -> str:
    mark = "✓" if check["passed"] else "✗"
    if check["message"]:
        return f"{mark} {check['message']}"
    relation = ">=" if check["higher_is_better"] else "<="
    bound = f"{check['bound']:.5g}, {check['against']}"
    if check["reference"] is not None:
        bound += f" from the baseline's {check['reference']:.5g}"
    return (
        f"{mark} {subject(check)} {shown(check['value'])} {relation} {bound} "
        f"(interval {interval_text(check)})"
    )


def interval_text(check: CheckRecord) -> str:
    """Returns the interval of a check as text, such as `+0.1 to +0.14`, or that there is none."""
    if check["low"] is None and check["high"] is None:
        return "not known" if not check["message"] else "no bounds"
    form = "{:+.4g}" if check["difference"] is not None else "{:.4g}"
    ends = ("no bound" if end is None else form.format(end) for end in (check["low"], check["high"]))
    return " to ".join(ends)


def against_text(check: CheckRecord) -> str:
    """Returns a reader's name for the reference of a check."""
    against: str = check["against"]
    return _AGAINST.get(against, against)


def shown(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.6g}"


def _record(
    metric: str, kind: str, value: float | None, bound: float, higher: bool, passed: bool
) -> CheckRecord:
    return {
        "metric": metric,
        "against": kind,
        "value": value,
        "reference": None,
        "bound": bound,
        "higher_is_better": higher,
        "difference": None,
        "low": None,
        "high": None,
        "confidence": None,
        "num_examples": None,
        "passed": passed,
        "message": "",
    }
