"""Judges TFMA's results: the thresholds, with a sentence for each failure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2, validation_result_pb2
from tensorflow_model_analysis.slicer import slicer_lib

from components.evaluator.gate.check import metric_in_words, slice_in_words
from components.evaluator.gate.verdict import Metrics, Verdict
from components.nearest import nearest_first

OVERALL = "Overall"
NOTHING_CHECKED = Verdict()


def make_verdict(
    evaluation_uri: str,
    eval_config: config_pb2.EvalConfig,
    *,
    candidate: str = "",
    baseline: str | None = None,
    further: Sequence[str] = (),
    checked: Verdict = NOTHING_CHECKED,
    holds: bool = True,
) -> Verdict:
    """Returns the verdict on TFMA's results and the default checks."""
    result = tfma.load_eval_result(evaluation_uri, model_name=candidate or None)
    metrics, baseline_metrics = _by_slice(result), {}
    if baseline is not None:
        baseline_metrics = _by_slice(tfma.load_eval_result(evaluation_uri, model_name=baseline))
    slice_keys = [key for key, _ in result.slicing_metrics]
    by_model = {candidate: metrics}
    for name in further:
        by_model[name] = _by_slice(tfma.load_eval_result(evaluation_uri, model_name=name))
    failures = list(_failures(evaluation_uri, eval_config, by_model, baseline_metrics, slice_keys, checked))
    held = holds and not failures and bool(checked.doubts)
    return replace(
        checked,
        blessed=not failures and not held,
        metrics=metrics.get(OVERALL, {}),
        failures=failures,
        baseline_metrics=baseline_metrics.get(OVERALL, {}),
        slices={name: values for name, values in metrics.items() if name != OVERALL},
        baseline_slices={name: values for name, values in baseline_metrics.items() if name != OVERALL},
        held=held,
        further_models={name: by_model[name].get(OVERALL, {}) for name in further},
    )


def _by_slice(result: Any) -> dict[str, Metrics]:
    return {
        slicer_lib.stringify_slice_key(slice_key): dict(sorted(_flatten(by_output)))
        for slice_key, by_output in sorted(result.slicing_metrics, key=lambda item: str(item[0]))
        if not slicer_lib.is_cross_slice_key(slice_key)
    }


def _flatten(by_output: Mapping[str, Any] | None) -> Iterator[tuple[str, float | None]]:
    for output, by_sub_key in (by_output or {}).items():
        for sub_key, metrics in by_sub_key.items():
            for name, value in metrics.items():
                # With `compute_confidence_intervals`, TFMA puts the value between its bounds.
                estimate = value.get("doubleValue", value.get("boundedValue", {}).get("value"))
                if estimate is not None:
                    number = float(estimate)
                    yield (_metric_name(name, output, sub_key), number if math.isfinite(number) else None)


def _metric_name(name: str, output: str, sub_key: str) -> str:
    return "".join([f"{output}/" if output else "", name, f"@{sub_key}" if sub_key else ""])


def _failures(
    evaluation_uri: str,
    eval_config: config_pb2.EvalConfig,
    by_model: Mapping[str, Mapping[str, Metrics]],
    baseline: Mapping[str, Metrics],
    slice_keys: Sequence[Any],
    checked: Verdict,
) -> Iterator[str]:
    if not any(by_model.values()):
        yield "The model was evaluated on no examples."
        return
    yield from (check.message for check in checked.checks if not check.passed)
    yield from checked.failures
    if not _has_thresholds(eval_config):
        if not checked.checks:
            why = "".join(f" Not checked: {reason}" for reason in checked.not_checked)
            yield f"No threshold is configured, so the model cannot be judged.{why}"
        return
    result = tfma.load_validation_result(evaluation_uri)
    for validation in result.metric_validations_per_slice:
        slice_name, slice_values = _slice_name(validation), _slice_values(validation)
        for failure in validation.failures:
            model = failure.metric_key.model_name
            place = [f"model: {model}"] if len(by_model) > 1 else []
            place += [] if slice_values else [f"slice: {slice_name}"]
            metrics = by_model.get(model, {}).get(slice_name, {})
            where = f" ({', '.join(place)})" if place else ""
            yield _sentence(failure, where, metrics, baseline.get(slice_name, {}), slice_values)
    for missing in (*result.missing_slices, *result.missing_cross_slices):
        # TFMA 0.52 also lists every pair of slices, and slices of which no metric was computed.
        if not any(_is_applicable(missing, key) for key in slice_keys):
            yield _no_examples(missing)


def _no_examples(spec: config_pb2.SlicingSpec | config_pb2.CrossSlicingSpec) -> str:
    if isinstance(spec, config_pb2.SlicingSpec) and spec.feature_values and not spec.feature_keys:
        where = slice_in_words(spec.feature_values)
        return f"A threshold is for {where}, and no example of the evaluation has this."
    return f"No example is in a slice that has a threshold: {_one_line(spec)}."


def _is_applicable(spec: config_pb2.SlicingSpec | config_pb2.CrossSlicingSpec, slice_key: Any) -> bool:
    is_cross = slicer_lib.is_cross_slice_key(slice_key)
    if isinstance(spec, config_pb2.CrossSlicingSpec):
        return is_cross and bool(
            slicer_lib.is_cross_slice_applicable(cross_slice_key=slice_key, cross_slicing_spec=spec)
        )
    return not is_cross and bool(slicer_lib.SingleSliceSpec(spec=spec).is_slice_applicable(slice_key))


def _has_thresholds(eval_config: config_pb2.EvalConfig) -> bool:
    for spec in eval_config.metrics_specs:
        if spec.thresholds or spec.per_slice_thresholds or spec.cross_slice_thresholds:
            return True
        for metric in spec.metrics:
            if metric.threshold.ByteSize() or metric.per_slice_thresholds or metric.cross_slice_thresholds:
                return True
    return False


def _slice_name(validation: validation_result_pb2.MetricsValidationForSlice) -> str:
    if validation.HasField("cross_slice_key"):
        baseline, comparison = slicer_lib.deserialize_cross_slice_key(validation.cross_slice_key)
        return (
            f"{slicer_lib.stringify_slice_key(baseline)} against {slicer_lib.stringify_slice_key(comparison)}"
        )
    return slicer_lib.stringify_slice_key(slicer_lib.deserialize_slice_key(validation.slice_key))


def _slice_values(validation: validation_result_pb2.MetricsValidationForSlice) -> dict[str, object]:
    """Returns the values that define a slice; none for all examples, and for a comparison of two slices."""
    if validation.HasField("cross_slice_key"):
        return {}
    return dict(slicer_lib.deserialize_slice_key(validation.slice_key))


def _sentence(
    failure: validation_result_pb2.ValidationFailure,
    where: str,
    candidate: Metrics,
    baseline: Metrics,
    slice_values: Mapping[str, object],
) -> str:
    key: metrics_for_slice_pb2.MetricKey = failure.metric_key
    sub_key = str(tfma.metrics.SubKey.from_proto(key.sub_key)) if key.HasField("sub_key") else ""
    name = _metric_name(key.name, key.output_name, sub_key)
    subject = metric_in_words(name, slice_values)
    if not failure.HasField("metric_value"):
        return _missing(name, subject, key.is_diff, candidate, where)
    if failure.message:
        return f"{subject} cannot be compared with its threshold{where}: {_one_line(failure.message)}"
    value = failure.metric_value.double_value.value
    if math.isnan(value):
        return f"{subject} has a threshold but no value: the examples lack the data that it needs{where}"
    is_value = f"{subject}: {value:.6g}" if slice_values else f"{subject} {value:.6g}"
    threshold = failure.metric_threshold
    if threshold.HasField("value_threshold"):
        bounds = threshold.value_threshold
        if bounds.HasField("lower_bound") and not value >= bounds.lower_bound.value:
            return f"{is_value} is below the lower bound {bounds.lower_bound.value:g}{where}"
        return f"{is_value} is above the upper bound {bounds.upper_bound.value:g}{where}"
    change = threshold.change_threshold
    least = "at most" if change.direction == config_pb2.LOWER_IS_BETTER else "at least"
    allowed = [f"{change.absolute.value:+g}"] if change.HasField("absolute") else []
    if change.HasField("relative"):
        allowed.append(f"{change.relative.value:+.3%} of the baseline's")
    values = ""
    mine, other = candidate.get(name), baseline.get(name)
    if mine is not None and other is not None:
        values = f" from the baseline's {other:.6g} to {mine:.6g}"
    return (
        f"{subject} changed by {value:+.6g}{values}, where {least} {' and '.join(allowed)} is required{where}"
    )


def _missing(name: str, subject: str, is_change: bool, metrics: Metrics, where: str) -> str:
    if is_change and name in metrics:
        return (
            f"{subject} has a change threshold, but the baseline model has no metric of this name{where}. "
            "Remove change_threshold until a model that has it is blessed."
        )
    names = ", ".join(nearest_first(name, metrics)) or "none"
    return (
        f"{subject} has a threshold but was not computed{where}. The metrics of the evaluation are: {names}"
    )


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
