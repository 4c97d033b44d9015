"""`[trainer]` of the configuration."""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pipelines.config.data import Section

_MAX_INT32 = 2**31 - 1  # TFX's num_steps is an int32
_MAX_DEPTH = 50  # of custom_config

_Count = Annotated[int, Field(ge=1, le=_MAX_INT32)]


class TrainerConfig(Section):
    """`[trainer]`: length and settings of the training.

    Attributes:
        model: Model without a `[module]`: `boosted_trees`, `wide_deep`, `linear`, or `auto`, which compares
            all three and selects the model with the lowest loss on held-out training rows.
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
        warm_start: Starts training from the model that serves, with a `[module]`. `trainer_fn` or `run_fn`
            finds it in `fn_args.base_model`, which is None while no version serves. Default: each run
            starts from new weights.
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
    warm_start: bool = False
    workers: int = Field(default=0, ge=0, le=_MAX_INT32)
    ps: int = Field(default=0, ge=0, le=_MAX_INT32, validate_default=True)
    evaluator: bool = False
    custom_config: dict[str, Any] = Field(default_factory=dict)

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

    @model_validator(mode="after")
    def _trees_have_no_steps(self) -> "TrainerConfig":
        if self.model == "boosted_trees" and self.train_steps is not None:
            raise ValueError(
                f"train_steps = {self.train_steps}: boosted trees are grown tree by tree, not in steps; set "
                "n_trees, and leave train_steps out"
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
