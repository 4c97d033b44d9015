"""`[trainer]` of the configuration."""

import math
import re
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pipelines.config.data import Section

_MAX_INT32 = 2**31 - 1  # TFX's num_steps is an int32
_MAX_DEPTH = 50  # of custom_config

MAX_FOLDS = 6  # at least a sixth of the training rows is held out
_SECONDS = {"s": 1, "m": 60, "h": 3_600}

_Count = Annotated[int, Field(ge=1, le=_MAX_INT32)]

Decide = str | float | dict[str, Any]
"""Goal by which a decision threshold is chosen, or the threshold."""

_GOALS = ("accuracy", "f1", "balanced")
_COSTS = ("false_positive", "false_negative")


def describe_goal(decide: Decide) -> str:
    """Returns a goal in a few words, such as `f1` or `recall of at least 0.8`."""
    if not isinstance(decide, dict):
        return decide if isinstance(decide, str) else "as configured"
    ((name, value),) = decide.items()
    if name == "cost":
        return f"a false positive costs {value[_COSTS[0]]:g}, a false negative {value[_COSTS[1]]:g}"
    return f"{name} of at least {value:g}"


class TrainerConfig(Section):
    """`[trainer]`: length and settings of the training.

    Attributes:
        model: Model without a `[module]`: `boosted_trees`, `wide_deep`, `linear`, or `auto`, which trains
            all three, and takes the best one on held-out training rows, or an ensemble of them if that is
            clearly better.
        folds: Number of trainings of each model of `auto`, each of which holds out another sixth of the
            rows. Default: 6 with fewer than 5,000 rows, otherwise 1.
        time_limit: Time for the trainings of `auto`, such as `"90s"`, `"5m"` or `"1h"`, which the models
            share. Trees are then grown again from all rows, if they are a part of the model. Default: none.
        train_steps: Number of optimizer steps. Default: chosen by the number of rows; 1,000 with a
            `[module]`.
        eval_steps: Number of batches of each evaluation during training. Default: all; 150 with a
            `[module]`.
        batch_size: Examples per step. Default: chosen by the number of rows.
        hidden_units: Layer sizes of the DNN. Default: chosen by the number of rows.
        learning_rate: Learning rate of the DNN's optimizer. Default: 0.003.
        n_trees: Largest number of boosted trees, for each class if there are more than two. Default: 2,000
            (1,000 with more than 100,000 rows), 800 or 400 without early stopping, and fewer with many
            classes.
        max_depth: Depth of a boosted tree.
        seed: `tf_random_seed` of the Estimator.
        class_weights: Weight of each class, such as `{late = 5, "on time" = 1}`, which multiplies those of
            `data.weight`; `balanced` gives all classes the same total. Default: classes are not weighted.
        early_stopping: Holds out one sixth of the training rows, without a `[module]`. Training stops when
            the loss on them stops falling, and the best checkpoint is kept. It needs at least 200 rows.
        decide: Goal of the decision threshold of a binary classifier, which is chosen on the held-out rows:
            `accuracy`, `f1`, `balanced` (accuracy of both classes), `{recall = 0.8}` or `{precision = 0.9}`
            (at least), `{cost = {false_positive = 1, false_negative = 20}}`; or the threshold. Default: 0.5.
        interval: Share of the labels, such as 0.9, that should lie between `lower` and `upper`, which a
            regression then also predicts. Their distances follow from the errors on held-out rows.
        warm_start: Starts training from the live model, with a `[module]`. `trainer_fn` or `run_fn` finds it
            in `fn_args.base_model`, which is None before the first push. Default: each run starts from new
            weights.
        workers: Number of processes on this machine that train in addition to the chief, which is then also
            a separate process. Default: none; a single process alternates between training and
            evaluating.
        ps: Number of parameter servers, which keep the variables; at least one with workers.
        evaluator: Adds a process that evaluates and exports while the workers train. Default: no; the last
            checkpoint is evaluated and exported after the training.
        custom_config: User's own settings for `trainer_fn`, `run_fn` and `preprocessing_fn`. They are
            passed as JSON: text, numbers, booleans, lists and tables.
    """

    model: Literal["auto", "boosted_trees", "wide_deep", "linear"] = "auto"
    folds: int | None = Field(default=None, ge=1, le=MAX_FOLDS)
    time_limit: str | None = None
    train_steps: _Count | None = None
    eval_steps: _Count | None = None
    batch_size: _Count | None = None
    hidden_units: tuple[_Count, ...] | None = None
    learning_rate: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    n_trees: int | None = Field(default=None, ge=1, le=100_000)
    max_depth: int = Field(default=6, ge=1, le=16)
    seed: int = Field(default=1, ge=0, le=_MAX_INT32)
    class_weights: Literal["balanced"] | dict[str, float] | None = None
    early_stopping: bool = True
    decide: Decide | None = None
    interval: float | None = Field(default=None, gt=0, lt=1)
    warm_start: bool = False
    workers: int = Field(default=0, ge=0, le=_MAX_INT32)
    ps: int = Field(default=0, ge=0, le=_MAX_INT32, validate_default=True)
    evaluator: bool = False
    custom_config: dict[str, Any] = Field(default_factory=dict)

    @field_validator("decide", mode="before")
    @classmethod
    def _is_a_goal(cls, decide: Any) -> Any:
        if decide is None or (isinstance(decide, str) and decide in _GOALS) or _is_between(decide, 0, 1):
            return decide
        if isinstance(decide, dict) and len(decide) == 1:
            ((name, value),) = decide.items()
            if name in ("recall", "precision") and (_is_between(value, 0, 1) or value == 1):
                return decide
            costs = value if name == "cost" and isinstance(value, dict) else {}
            if set(costs) == set(_COSTS) and all(_is_between(cost, 0, math.inf) for cost in costs.values()):
                return decide
        raise ValueError(
            'give "accuracy", "f1", "balanced", {recall = 0.8}, {precision = 0.9}, {cost = {false_positive = '
            "1, false_negative = 20}}, or a threshold between 0 and 1, such as 0.3"
        )

    @field_validator("time_limit", mode="before")
    @classmethod
    def _is_a_duration(cls, limit: Any) -> Any:
        if limit is None or (isinstance(limit, str) and re.fullmatch(r"[1-9][0-9]*[smh]", limit)):
            return limit
        raise ValueError('give a number with its unit, such as "90s", "5m" or "1h"')

    @field_validator("ps", "evaluator")
    @classmethod
    def _belongs_to_workers(cls, value: int, info: ValidationInfo) -> int:
        workers = info.data.get("workers")  # None if that is invalid itself
        if value and workers == 0:
            raise ValueError(
                "it needs workers; set trainer.workers, the number of "
                f"processes that train in addition to the chief, or leave trainer.{info.field_name} out"
            )
        if workers and info.data.get("model") == "boosted_trees":
            raise ValueError(
                f"trainer.workers = {workers}: boosted trees are grown in one process, on all cores; leave "
                "the workers out, or set another trainer.model"
            )
        if workers and info.field_name == "ps" and value < 1:
            raise ValueError(
                f"trainer.workers = {workers} needs a parameter server to keep the variables; set "
                "trainer.ps = 1, or more for a large model"
            )
        return value

    @property
    def time_limit_secs(self) -> float | None:
        return None if self.time_limit is None else int(self.time_limit[:-1]) * _SECONDS[self.time_limit[-1]]

    @model_validator(mode="after")
    def _trees_have_no_steps(self) -> "TrainerConfig":
        if self.model == "boosted_trees" and self.train_steps is not None:
            raise ValueError(
                f"train_steps = {self.train_steps}: boosted trees are grown tree by tree, not in steps; set "
                "n_trees, and leave train_steps out"
            )
        return self

    @model_validator(mode="after")
    def _several_models_have_folds(self) -> "TrainerConfig":
        for name, has_effect in (("folds", (self.folds or 1) > 1), ("time_limit", self.time_limit)):
            if self.model != "auto" and has_effect:
                raise ValueError(
                    f'{name} is for model = "auto", and model is "{self.model}"; leave one of the two out'
                )
        return self

    @field_validator("class_weights", mode="before")
    @classmethod
    def _are_above_0(cls, weights: Any) -> Any:
        if weights in (None, "balanced"):
            return weights
        if not isinstance(weights, dict) or not weights:
            raise ValueError('give "balanced", or a weight for each class, such as {late = 5, "on time" = 1}')
        for name, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise ValueError(f"the weight of the class {name!r} must be a number above 0")
        return {str(name): weight for name, weight in weights.items()}

    @field_validator("custom_config")
    @classmethod
    def _fits_json(cls, custom_config: dict[str, Any]) -> dict[str, Any]:
        _check_json(custom_config, "custom_config", 0)
        return custom_config


def _is_between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low < value < high


def _check_json(value: Any, key: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        for name, item in value.items():
            _check_json(item, f"{key}.{name}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_json(item, f"{key}[{index}]", depth + 1)
    elif not isinstance(value, str | int | float | bool):
        raise ValueError(
            f"{key} = {value} is a {type(value).__name__}, which JSON does not have; write it as text in "
            "quotes"
        )
