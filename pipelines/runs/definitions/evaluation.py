"""Builds the EvalConfig of the Evaluator from the metrics, slices and thresholds of a pipeline."""

import json
from typing import Any

from components.evaluator.gate.default_checks import DefaultChecks
from components.nearest import nearest_first
from pipelines.config.evaluator import METRICS, EvaluatorConfig, ThresholdConfig
from pipelines.config.pipeline_config import PipelineConfig, ProblemType
from pipelines.errors import BadInputError
from pipelines.tabular.plan import LABEL_KEY

_DEFAULT_METRICS: dict[ProblemType, tuple[str, ...]] = {
    "binary": (
        "auc",
        "auc_precision_recall",
        "binary_crossentropy",
        "binary_accuracy",
        "precision",
        "recall",
        "mean_label",
        "mean_prediction",
        "example_count",
    ),
    "multi-class": ("sparse_categorical_accuracy", "sparse_categorical_crossentropy", "example_count"),
    "regression": (
        "root_mean_squared_error",
        "mean_absolute_error",
        "mean_squared_error",
        "squared_pearson_correlation",
        "mean_label",
        "mean_prediction",
        "example_count",
    ),
}


def check_metrics_fit(config: PipelineConfig, problem_type: ProblemType) -> None:
    """Checks that the metrics in `[evaluator]` can be computed for the problem."""
    thresholds = config.evaluator.thresholds or ()
    for name in (*(config.evaluator.metrics or ()), *(bound.metric for bound in thresholds)):
        if problem_type not in METRICS[name].problem_types:
            fitting = [other for other in METRICS if problem_type in METRICS[other].problem_types]
            raise BadInputError(
                f"evaluator: {name!r} is not a metric for a {problem_type} problem, which follows from "
                f"the column {config.data.label!r}. Metrics for it: {', '.join(fitting)}."
            )


def default_checks(
    settings: EvaluatorConfig, problem_type: ProblemType | None, fallback: ProblemType | None = None
) -> DefaultChecks | None:
    """Returns the settings of the default checks; None if they are switched off."""
    if not settings.default_checks:
        return None
    return DefaultChecks(
        problem_type,
        fallback,
        settings.confidence,
        settings.tolerance,
        min_skill_kept=settings.min_skill_kept,
    )


def merge_thresholds(thresholds: tuple[ThresholdConfig, ...]) -> tuple[ThresholdConfig, ...]:
    """Returns one threshold for each metric, the tightest of all its bounds."""
    by_metric: dict[str, list[ThresholdConfig]] = {}
    for bound in thresholds:
        by_metric.setdefault(bound.metric, []).append(bound)
    return tuple(_tightest(metric, bounds) for metric, bounds in by_metric.items())


def _tightest(metric: str, bounds: list[ThresholdConfig]) -> ThresholdConfig:
    lower = max((bound.lower for bound in bounds if bound.lower is not None), default=None)
    upper = min((bound.upper for bound in bounds if bound.upper is not None), default=None)
    if lower is not None and upper is not None and lower > upper:
        raise BadInputError(
            f"evaluator.thresholds: no model can pass the {len(bounds)} entries for {metric!r}: "
            f"lower = {lower} is above upper = {upper}. Change one of them, or remove it."
        )
    regressions = (bound.max_regression for bound in bounds if bound.max_regression is not None)
    return ThresholdConfig(
        metric=metric, lower=lower, upper=upper, max_regression=min(regressions, default=None)
    )


def check_evaluator_config(config: PipelineConfig, columns: list[str]) -> None:
    thresholds = config.evaluator.thresholds or ()
    for name in (*(config.evaluator.metrics or ()), *(bound.metric for bound in thresholds)):
        if name not in METRICS:
            nearest = nearest_first(name, METRICS)
            raise BadInputError(
                f"evaluator: there is no metric {name!r}. Did you mean {nearest[0]!r}? "
                f"Metrics: {', '.join(nearest)}."
            )
    for bound in thresholds:
        if bound.max_regression is not None and METRICS[bound.metric].higher_is_better is None:
            raise BadInputError(
                f"evaluator.thresholds: max_regression = {bound.max_regression} does not apply to "
                f"{bound.metric!r}, where neither higher nor lower values are better."
            )
    merge_thresholds(thresholds)
    if not thresholds and not config.evaluator.default_checks:
        raise BadInputError(
            "evaluator.default_checks = false leaves nothing that a model has to pass. Give "
            'evaluator.thresholds, such as [[evaluator.thresholds]] with metric = "auc" and lower = 0.6.'
        )
    label = config.evaluator.label
    if config.module is None and label not in (None, LABEL_KEY):
        raise BadInputError(
            f"evaluator.label = {label!r}: the generic model has no such label. Its transformed "
            f"label of {config.data.label!r} is {LABEL_KEY!r}; remove the setting."
        )
    for slice_columns in config.evaluator.slices or ():
        for name in slice_columns:
            if name not in columns:
                raise BadInputError(
                    f"evaluator.slices: there is no column {name!r}. Columns: {', '.join(columns)}."
                )


def build_eval_config(
    label: str | None,
    metrics: tuple[str, ...],
    thresholds: tuple[ThresholdConfig, ...],
    slices: tuple[tuple[str, ...], ...],
    weight: str = "",
) -> Any:
    """Returns the `EvalConfig` proto.

    `weight`: feature of the evaluation model that weighs the rows; empty without weights.
    """
    from tensorflow_model_analysis.proto import config_pb2

    bounds = {bound.metric: bound for bound in merge_thresholds(thresholds)}
    names = dict.fromkeys((*metrics, *bounds))
    counts = [name for name in names if weight and name == "example_count"]  # of rows, not of their weights
    parts = (
        ([name for name in names if name not in counts], None),
        (counts, config_pb2.ExampleWeightOptions(unweighted=True)),
    )
    return config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(label_key=label or "", example_weight_key=weight)],
        slicing_specs=[config_pb2.SlicingSpec(feature_keys=keys) for keys in dict.fromkeys(((), *slices))],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=[_metric_config(config_pb2, name, bounds.get(name)) for name in part],
                example_weights=options,
            )
            for part, options in parts
            if part
        ],
    )


def _metric_config(config_pb2: Any, name: str, bound: ThresholdConfig | None) -> Any:
    metric = METRICS[name]
    result = config_pb2.MetricConfig(class_name=metric.class_name, config=json.dumps({"name": name}))
    if bound is None:
        return result
    # TFMA applies MetricConfig.threshold to every slice; a slice of a few rows might fail it.
    threshold = result.per_slice_thresholds.add(slicing_specs=[config_pb2.SlicingSpec()]).threshold
    if bound.lower is not None:
        threshold.value_threshold.lower_bound.value = bound.lower
    if bound.upper is not None:
        threshold.value_threshold.upper_bound.value = bound.upper
    if bound.max_regression is not None:
        change = threshold.change_threshold
        if metric.higher_is_better:
            change.direction = config_pb2.MetricDirection.HIGHER_IS_BETTER
            change.absolute.value = -bound.max_regression
        else:
            change.direction = config_pb2.MetricDirection.LOWER_IS_BETTER
            change.absolute.value = bound.max_regression
    return result


def default_metrics(problem_type: ProblemType | None) -> tuple[str, ...]:
    """Returns the metrics that are computed for a problem type; none if it is unknown."""
    return _DEFAULT_METRICS[problem_type] if problem_type else ()


def problem_type_of_metrics(metrics: tuple[str, ...]) -> ProblemType | None:
    """Returns the problem type of the first metric that fits only one type; None if there is none."""
    for name in metrics:
        if name in METRICS and len(METRICS[name].problem_types) == 1:
            return METRICS[name].problem_types[0]
    return None


def known_problem_type(config: PipelineConfig) -> ProblemType | None:
    """Returns the problem type that a configuration sets or that its metrics imply; None if unknown."""
    settings = config.evaluator
    bounds = (bound.metric for bound in settings.thresholds or ())
    return config.data.problem_type or problem_type_of_metrics((*(settings.metrics or ()), *bounds))


def check_problem_is_known(config: PipelineConfig) -> None:
    """Checks that the problem type of a label that the user's module makes is known.

    The metrics are chosen before there is a model, so they can't depend on its predictions, and the raw
    column may be of another kind, such as numbers that are converted to classes.
    """
    derived, raw = config.evaluator.label, config.data.label
    if (
        config.module is not None
        and derived not in (None, raw)
        and config.evaluator.metrics is None
        and known_problem_type(config) is None
    ):
        raise BadInputError(
            f"evaluator.label = {derived!r} is not the column {raw!r}, so it is unknown which metrics fit "
            'it. Set data.problem_type = "binary", "multi-class" or "regression"; or give '
            "evaluator.metrics, or a threshold on a metric of one problem type, such as auc."
        )
