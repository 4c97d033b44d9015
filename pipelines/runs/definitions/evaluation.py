"""Builds the EvalConfig of the Evaluator from the metrics, slices and thresholds of a pipeline."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from components.evaluator.gate.check import OF_CLASS, metric_in_words
from components.evaluator.gate.default_checks import DefaultChecks
from components.nearest import nearest_first
from pipelines.config.evaluator import EvaluatorConfig, ThresholdConfig
from pipelines.config.metrics import find_metrics, fits, is_negated, metric_of, resolve_metric
from pipelines.config.pipeline_config import PipelineConfig, ProblemType
from pipelines.data.column_profile import ColumnProfile
from pipelines.data.missing import MISSING_TOKENS
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError
from pipelines.tabular.plan import LABEL_KEY, MISSING_CATEGORY, TabularPlan

_MAX_VALUES = 20  # in a message

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
    "multi-class": (
        "sparse_categorical_accuracy",
        "sparse_categorical_crossentropy",
        "f1_macro",
        "balanced_accuracy",
        "example_count",
    ),
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


def resolve_metrics(
    config: PipelineConfig, problem_type: ProblemType | None, classes: Sequence[str] = ()
) -> tuple[tuple[str, ...] | None, tuple[ThresholdConfig, ...]]:
    """Returns the metrics and thresholds of `[evaluator]` with our names for the metrics.

    classes: Names of the classes; empty if they are not known yet.
    """

    def resolve(name: str, where: str) -> str:
        why = f", which follows from the column {config.data.label!r}"
        # A module may have made a label of another type.
        name = resolve_metric(name, problem_type, where, why, must_fit=config.module is None)
        base, _, argument = name.partition("@")
        if classes and argument and base in OF_CLASS and argument not in classes:
            nearest = nearest_first(argument, classes)
            raise BadInputError(
                f"{where}: {config.data.label!r} has no class {argument!r}. Did you mean {nearest[0]!r}? "
                f"Classes: {', '.join(nearest)}."
            )
        if classes and base == "top_k_accuracy" and int(argument) >= len(classes):
            raise BadInputError(
                f"{where}: {name!r} is 1 for every model, because {config.data.label!r} has only "
                f"{len(classes)} classes."
            )
        return name

    settings = config.evaluator
    metrics = settings.metrics
    if metrics is not None:
        metrics = tuple(dict.fromkeys(resolve(name, "evaluator.metrics") for name in metrics))
    thresholds = []
    for bound in settings.thresholds or ():
        name = bound.metric
        if bound.class_ is not None:
            if not set(find_metrics(name)) & set(OF_CLASS):
                raise BadInputError(
                    f"evaluator.thresholds: {name!r} has no value for one class, such as {bound.class_!r}; "
                    f"these have: {', '.join(nearest_first(name, OF_CLASS))}."
                )
            name = f"{name}@{bound.class_}"
        ours = resolve(name, "evaluator.thresholds")
        if bound.max_regression is not None and metric_of(ours).higher_is_better is None:
            raise BadInputError(
                f"evaluator.thresholds: max_regression = {bound.max_regression} does not apply to "
                f"{ours!r}, where neither higher nor lower values are better."
            )
        renamed: dict[str, Any] = {"metric": ours, "class_": None}
        if is_negated(name):
            renamed["lower"], renamed["upper"] = _negative(bound.upper), _negative(bound.lower)
        thresholds.append(bound.model_copy(update=renamed))
    return metrics, merge_thresholds(tuple(thresholds))


def _negative(bound: float | None) -> float | None:
    return None if bound is None else -bound


def merge_thresholds(thresholds: tuple[ThresholdConfig, ...]) -> tuple[ThresholdConfig, ...]:
    """Returns one threshold for each metric and slice, the tightest of all its bounds."""
    bounds_of: dict[Any, list[ThresholdConfig]] = {}
    for bound in thresholds:
        bounds_of.setdefault((bound.metric, frozenset(bound.slice_.items())), []).append(bound)
    return tuple(map(_tightest, bounds_of.values()))


def _tightest(bounds: list[ThresholdConfig]) -> ThresholdConfig:
    lower = max((bound.lower for bound in bounds if bound.lower is not None), default=None)
    upper = min((bound.upper for bound in bounds if bound.upper is not None), default=None)
    if lower is not None and upper is not None and lower > upper:
        subject = metric_in_words(bounds[0].metric, bounds[0].slice_)
        raise BadInputError(
            f"evaluator.thresholds: no model can pass the {len(bounds)} entries for {subject}: "
            f"lower = {lower} is above upper = {upper}. Change one of them, or remove it."
        )
    regressions = (bound.max_regression for bound in bounds if bound.max_regression is not None)
    tightest = {"lower": lower, "upper": upper, "max_regression": min(regressions, default=None)}
    return bounds[0].model_copy(update=tightest)


def check_evaluator_config(config: PipelineConfig, columns: list[str]) -> None:
    if not config.evaluator.thresholds and not config.evaluator.default_checks:
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
    slices = [("slices", names) for names in config.evaluator.slices or ()]
    slices += [("thresholds", tuple(bound.slice_)) for bound in config.evaluator.thresholds or ()]
    for key, slice_columns in slices:
        for name in slice_columns:
            if name not in columns:
                nearest = nearest_first(name, columns)
                raise BadInputError(
                    f"evaluator.{key}: there is no column {name!r}. Did you mean {nearest[0]!r}? "
                    f"Columns: {', '.join(nearest)}."
                )


def same_values(
    plan: TabularPlan | None, profile: CsvProfile, columns: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Returns the values that the generic model takes as one, for the slices of these columns.

    They are the words for a missing value, and those of booleans in upper and lower case. See `Evaluator`.
    """
    parts = {} if plan is None else {feature.column: feature for feature in plan.categorical}
    values_by_column = {}
    for name in columns:
        if name in parts and parts[name].date is None:
            words = profile.columns[name].distinct_values if parts[name].words else None
            values_by_column[name] = {
                **{word: word.lower() for word in words or ()},
                **dict.fromkeys(MISSING_TOKENS, MISSING_CATEGORY),
            }
    return values_by_column


def resolve_slices(
    thresholds: tuple[ThresholdConfig, ...], plan: TabularPlan | None, profile: CsvProfile
) -> tuple[ThresholdConfig, ...]:
    """Returns the thresholds with the values of their slices as the Evaluator sees them."""
    same = same_values(plan, profile, {name for bound in thresholds for name in bound.slice_})
    return tuple(
        bound.model_copy(
            update={
                "slice_": {
                    name: _slice_value(profile.columns[name], value, same.get(name, {}))
                    for name, value in bound.slice_.items()
                }
            }
        )
        for bound in thresholds
    )


def _slice_value(column: ColumnProfile, value: str, same: Mapping[str, str]) -> str:
    where = f"evaluator.thresholds: slice = {{{column.name} = {value!r}}}"
    if column.type == "float":
        raise BadInputError(f"{where}: the column has fractions; a slice is a text or a whole number.")
    if column.distinct_values is None:
        return value
    values = {same.get(cell, cell) for cell in column.distinct_values}
    values |= {same.get("", "")} if column.num_missing else set()
    if same.get(value, value) in values:
        return same.get(value, value)
    nearest = nearest_first(value, values)
    raise BadInputError(
        f"{where}: no row of the data has this value. Did you mean {nearest[0]!r}? "
        f"Values: {', '.join(nearest[:_MAX_VALUES])}"
        f"{', ...' if len(nearest) > _MAX_VALUES else ''}."
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

    bounds: dict[str, list[ThresholdConfig]] = {name: [] for name in metrics}
    for bound in merge_thresholds(thresholds):
        bounds.setdefault(bound.metric, []).append(bound)
    counts = [name for name in bounds if weight and name == "example_count"]  # of rows, not of their weights
    parts = (
        ([name for name in bounds if name not in counts], None),
        (counts, config_pb2.ExampleWeightOptions(unweighted=True)),
    )
    return config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(label_key=label or "", example_weight_key=weight)],
        slicing_specs=_slicing_specs(config_pb2, slices, thresholds),
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=[_metric_config(config_pb2, name, bounds[name]) for name in part],
                example_weights=options,
            )
            for part, options in parts
            if part
        ],
    )


def _slicing_specs(
    config_pb2: Any, slices: tuple[tuple[str, ...], ...], thresholds: tuple[ThresholdConfig, ...]
) -> list[Any]:
    """Returns all rows, the slices, and those of the thresholds that are not among them."""
    specs = [config_pb2.SlicingSpec(feature_keys=keys) for keys in dict.fromkeys(((), *slices))]
    computed = {frozenset(spec.feature_keys) for spec in specs}
    for values in dict.fromkeys(tuple(sorted(bound.slice_.items())) for bound in thresholds):
        if frozenset(dict(values)) in computed:
            continue
        if any(_is_odd_number(value) for _, value in values):
            # TFMA would not find the text "007", which it takes for a number; so all values are computed.
            specs.append(config_pb2.SlicingSpec(feature_keys=dict(values)))
            computed.add(frozenset(dict(values)))
        else:
            specs.append(config_pb2.SlicingSpec(feature_values=dict(values)))
    return specs


def _is_odd_number(text: str) -> bool:
    """Returns True for a number that is not written as Python writes it."""
    for number in (int, float):
        with contextlib.suppress(ValueError):
            return text != str(number(text))
    return False


def _metric_config(config_pb2: Any, name: str, bounds: list[ThresholdConfig]) -> Any:
    metric = metric_of(name)
    is_ours = not metric.class_name or "@" in name
    result = config_pb2.MetricConfig(
        class_name="SklearnMetric" if is_ours else metric.class_name,
        module="components.evaluator.metrics.sklearn_metrics" if is_ours else "",
        config=json.dumps({"name": name}),
    )
    for bound in bounds:
        # TFMA applies MetricConfig.threshold to every slice; a slice of a few rows might fail it.
        spec = config_pb2.SlicingSpec(feature_values=bound.slice_)
        threshold = result.per_slice_thresholds.add(slicing_specs=[spec]).threshold
        if bound.lower is not None:
            threshold.value_threshold.lower_bound.value = bound.lower
        if bound.upper is not None:
            threshold.value_threshold.upper_bound.value = bound.upper
        if bound.max_regression is not None:
            change = threshold.change_threshold
            change.absolute.value = (-1 if metric.higher_is_better else 1) * bound.max_regression
            change.direction = (
                config_pb2.HIGHER_IS_BETTER if metric.higher_is_better else config_pb2.LOWER_IS_BETTER
            )
    return result


def default_metrics(problem_type: ProblemType | None) -> tuple[str, ...]:
    """Returns the metrics that are computed for a problem type; none if it is unknown."""
    return _DEFAULT_METRICS[problem_type] if problem_type else ()


def problem_type_of_metrics(metrics: tuple[str, ...]) -> ProblemType | None:
    """Returns the problem type of the first metric that fits only one type; None if there is none."""
    for name in metrics:
        types = {kind for ours in find_metrics(name) for kind in _DEFAULT_METRICS if fits(ours, kind)}
        if len(types) == 1:
            return types.pop()
    return None


def known_problem_type(config: PipelineConfig) -> ProblemType | None:
    """Returns the problem type that a configuration sets or that its metrics imply; None if unknown."""
    settings = config.evaluator
    bounds = (
        bound.metric if bound.class_ is None else f"{bound.metric}@{bound.class_}"
        for bound in settings.thresholds or ()
    )
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
