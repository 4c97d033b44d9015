"""The search space of the generic models, and a plan with the values of a trial."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.nearest import nearest_first
from components.tuner.search_space import (
    Choice,
    Parameter,
    Range,
    SearchSpace,
    Value,
    Values,
    When,
    is_active,
)
from components.tuner.settings import DEFAULT_METRIC, Direction
from pipelines.config.metrics import METRICS
from pipelines.config.pipeline_config import ProblemType
from pipelines.config.tuner import TunerConfig, parse_layers
from pipelines.errors import BadInputError
from pipelines.tabular.plan import ModelName, TabularPlan, possible_models

MODEL = "model"
"""Name of the parameter that chooses one of several models."""


@dataclass(frozen=True)
class Setting:
    """A setting of a model that can be searched."""

    field: str  # Field of the `TrainingPlan` or, for trees, of the `TreesPlan`
    low: float | None  # Lowest value that the model takes; None for a setting that is not a number
    high: float = math.inf  # Highest value that it takes
    is_whole: bool = False  # True for integers


_POSITIVE = 1e-12

SETTINGS: dict[ModelName, dict[str, Setting]] = {
    "boosted_trees": {
        "learning_rate": Setting("learning_rate", _POSITIVE),
        "max_depth": Setting("max_depth", 1, 16, is_whole=True),
        "n_trees": Setting("n_trees", 1, 100_000, is_whole=True),
        "l2_regularization": Setting("l2_regularization", 0),
        "min_node_examples": Setting("min_node_examples", 1, is_whole=True),
    },
    "wide_deep": {
        "hidden_units": Setting("hidden_units", None),
        "learning_rate": Setting("learning_rate", _POSITIVE),
        "linear_learning_rate": Setting("linear_learning_rate", _POSITIVE),
        "dropout": Setting("dropout", 0, 0.999),
        "batch_size": Setting("batch_size", 1, is_whole=True),
        "train_steps": Setting("train_steps", 1, is_whole=True),
    },
    "linear": {
        "learning_rate": Setting("linear_learning_rate", _POSITIVE),
        "batch_size": Setting("batch_size", 1, is_whole=True),
        "train_steps": Setting("train_steps", 1, is_whole=True),
    },
}
"""Settings that can be searched, by model and name."""

_METRICS: dict[ProblemType, tuple[str, ...]] = {
    "binary": (DEFAULT_METRIC, "auc", "auc_precision_recall", "accuracy", "precision", "recall"),
    "multi-class": (DEFAULT_METRIC, "accuracy"),
    "regression": (DEFAULT_METRIC,),
}
"""Metrics of the evaluations during the training of the generic models."""

_UNITS = ("32", "64,32", "128,64", "256,128", "128,64,32")


def search_space(plan: TabularPlan, config: TunerConfig) -> SearchSpace:
    """Returns the space that is searched: that of the configuration, or that of the plan's model.

    With several models, the model is a parameter, too; the names of the others begin with their model's.
    """
    models = _models(plan)
    configured = list(config.parameters())
    if not configured:
        return SearchSpace(_joined(plan, {name: default_space(plan, name) for name in models}))
    by_model: dict[ModelName, list[Parameter]] = {}
    for group, parameter in configured:
        model = _group_model(group, parameter, models)
        name = parameter.name.removeprefix(f"{group}.")
        _check(model, name, parameter)
        by_model.setdefault(model, []).append(replace(parameter, name=name))
    return SearchSpace(_joined(plan, by_model))


def first_trials(plan: TabularPlan, space: SearchSpace) -> tuple[Values, ...]:
    """Returns the values that are used without a search, for each model that the space has."""
    models = _models(plan)
    if len(models) == 1:
        return (_current(plan, models[0], space, ""),)
    firsts = []
    for model in models:
        chosen: Values = {MODEL: model}
        if any(is_active(parameter, chosen) for parameter in space.parameters if parameter.when):
            firsts.append(chosen | _current(plan, model, space, f"{model}."))
    return tuple(firsts)


def with_values(plan: TabularPlan, values: Mapping[str, Any]) -> TabularPlan:
    """Returns the plan with the values of a trial."""
    if not values:
        return plan
    (model,) = [values[MODEL]] if MODEL in values else _models(plan)
    training, trees = plan.training, plan.training.trees
    for name, value in values.items():
        if name == MODEL:
            continue
        field = SETTINGS[model][name.removeprefix(f"{model}.")].field
        if field == "hidden_units":
            value = parse_layers(value)
        if model == "boosted_trees":
            trees = trees.model_copy(update={field: value})
        else:
            training = training.model_copy(update={field: value})
    training = training.model_copy(update={"model": model, "trees": trees})
    return plan.model_copy(update={"training": training})


def check_metric(config: TunerConfig, problem_type: ProblemType) -> None:
    """Checks that the generic models have the metric."""
    metrics = _METRICS[problem_type]
    if config.metric is not None and config.metric not in metrics:
        nearest = nearest_first(config.metric, metrics)
        raise BadInputError(
            f"tuner.metric = {config.metric!r}: evaluations during training have no such metric for a "
            f"{problem_type} problem. Did you mean {nearest[0]!r}? Metrics: {', '.join(nearest)}."
        )


def search_direction(config: TunerConfig) -> Direction:
    if config.direction is not None:
        return config.direction
    name = config.metric or DEFAULT_METRIC
    known_metric = METRICS.get(name)
    higher = known_metric.higher_is_better if known_metric else _HIGHER_IS_BETTER.get(name)
    if higher is None:
        raise BadInputError(
            f"tuner.metric = {name!r}: it is not known whether higher or lower is better. Set "
            'tuner.direction = "maximize" or "minimize".'
        )
    return "maximize" if higher else "minimize"


_HIGHER_IS_BETTER = {"accuracy": True, "average_loss": False, "loss": False}


def default_space(plan: TabularPlan, model: ModelName) -> list[Parameter]:
    """Returns the parameters of a model that are searched if the configuration names none."""
    if model == "boosted_trees":
        l2 = plan.training.trees.l2_regularization
        return [
            Range("learning_rate", 0.01, 0.3, log=True),
            Range("max_depth", 2, 10),
            Range("l2_regularization", l2 / 100, l2 * 100, log=True),
            Range("min_node_examples", 3, 100, log=True),
        ]
    if model == "wide_deep":
        return [
            Choice("hidden_units", _UNITS),
            Range("learning_rate", 3e-4, 3e-2, log=True),
            Range("linear_learning_rate", 5e-4, 5e-2, log=True),
            Range("dropout", 0.0, 0.5),
        ]
    return [Range("learning_rate", 5e-4, 1e-1, log=True)]


def _models(plan: TabularPlan) -> tuple[ModelName, ...]:
    model = plan.training.model
    return possible_models(plan) if model == "auto" else (model,)


def _group_model(group: str | None, parameter: Parameter, models: tuple[ModelName, ...]) -> ModelName:
    if group is None:
        if len(models) == 1:
            return models[0]
        raise BadInputError(
            f"tuner.space.{parameter.name}: trainer.model is 'auto', so it is not clear whose setting it "
            f"is. Write it below its model, such as tuner.space.{models[0]}.{parameter.name}, or set "
            "trainer.model."
        )
    for model in models:
        if group == model:
            return model
    raise BadInputError(
        f"tuner.space.{group}: {'there is no such model' if group not in SETTINGS else 'it is not trained'}. "
        f"Models here: {', '.join(models)}."
    )


def _check(model: ModelName, name: str, parameter: Parameter) -> None:
    settings = SETTINGS[model]
    where = f"tuner.space.{parameter.name}"
    if name not in settings:
        nearest = nearest_first(name, settings)
        raise BadInputError(
            f"{where}: {model} has no setting {name!r} to search. Did you mean {nearest[0]!r}? "
            f"Settings: {', '.join(nearest)}."
        )
    if parameter.default is not None:
        raise BadInputError(
            f"{where}.default = {parameter.default!r}: the first trial of a generic model uses the values of "
            "[trainer], or those chosen automatically. Leave the default out."
        )
    setting = settings[name]
    values = parameter.values if isinstance(parameter, Choice) else (parameter.low, parameter.high)
    for value in values:
        _check_value(where, setting, value, isinstance(parameter, Range))


def _check_value(where: str, setting: Setting, value: Value, is_range: bool) -> None:
    if setting.low is None:
        try:
            parse_layers(value if not is_range else "")
        except ValueError as error:
            raise BadInputError(
                f"{where}: {value!r} is not a list of layers. Use for example [[32], [64, 32]]."
            ) from error
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (setting.is_whole and not isinstance(value, int)):
        kind = "an integer" if setting.is_whole else "a number"
        raise BadInputError(f"{where}: {value!r} is not {kind}, which this setting takes.")
    if not setting.low <= float(value) <= setting.high:
        low = "above 0" if setting.low == _POSITIVE else f"from {setting.low:g}"
        high = "" if setting.high == math.inf else f" to {setting.high:g}"
        raise BadInputError(f"{where}: {value!r} is not allowed; the setting takes {low}{high}.")


def _joined(plan: TabularPlan, by_model: Mapping[ModelName, list[Parameter]]) -> tuple[Parameter, ...]:
    """Returns the parameters, those of several models with their names and conditions."""
    if plan.training.model != "auto":
        (parameters,) = by_model.values()
        return tuple(parameters)
    joined: list[Parameter] = [Choice(MODEL, tuple(by_model))]
    for model, parameters in by_model.items():
        joined += [
            replace(parameter, name=f"{model}.{parameter.name}", when=When(MODEL, model))
            for parameter in parameters
        ]
    return tuple(joined)


def _current(plan: TabularPlan, model: ModelName, space: SearchSpace, prefix: str) -> Values:
    """Returns the plan's values of the parameters that a space has of a model."""
    source: Any = plan.training.trees if model == "boosted_trees" else plan.training
    values: Values = {}
    for parameter in space.parameters:
        name = parameter.name.removeprefix(prefix)
        if parameter.name == MODEL or not parameter.name.startswith(prefix):
            continue
        value = getattr(source, SETTINGS[model][name].field)
        values[parameter.name] = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return values
