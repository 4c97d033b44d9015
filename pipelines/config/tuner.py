"""`[tuner]`: a search for good hyperparameters before the training."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from components.tuner.search_space import Choice, Parameter, Range, Value
from components.tuner.settings import MAX_FOLDS
from pipelines.config.data import Section

BELOW = "below"
"""Type of an error whose message begins with a key below that of the field."""

_RANGE_KEYS = ("low", "high", "log", "default")
_CHOICE_KEYS = ("values", "default")


class TunerConfig(Section):
    """`[tuner]`: a search for good hyperparameters before the training. Without the section, there is none.

    Attributes:
        trials: Number of trainings, the first one of them with the values that are used without a search.
        folds: Number of trainings of a trial, whose mean value counts: each holds out other rows. Default:
            3 below 2,000 rows, otherwise 1.
        parallel: Number of trials at a time, each in a separate process.
        metric: Metric of the evaluations during training that decides, such as `auc`. Default:
            `average_loss`.
        direction: `maximize` or `minimize`. Default: what is better for a metric with a known name.
        pruner: `median` ends a trial whose best value so far is worse than the median of the others at the
            same evaluation; `none` runs all to their end.
        timeout_secs: Seconds after which no trial begins. Default: no limit.
        group: Output of a module's preprocessing_fn: rows with the same value are held out together. Needed
            if `split.by` is `column` or `time`. Default: row by row.
        space: Values to search, by the name of the setting: `{low = 1e-4, high = 1e-1, log = true}`,
            integers like `{low = 2, high = 10}`, or a list of values. Default: by the model; needed with a
            `[module]`.
    """

    trials: int = Field(default=20, ge=1, le=10_000)
    folds: int | None = Field(default=None, ge=1, le=MAX_FOLDS)
    parallel: int = Field(default=1, ge=1, le=256)
    metric: str | None = None
    direction: Literal["maximize", "minimize"] | None = None
    pruner: Literal["median", "none"] = "median"
    timeout_secs: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    group: str | None = None
    space: dict[str, Any] = Field(default_factory=dict)

    @field_validator("space")
    @classmethod
    def _has_parameters(cls, space: dict[str, Any]) -> dict[str, Any]:
        try:
            list(_parameters(space))
        except ValueError as error:  # its message begins with the key below `space`
            raise PydanticCustomError(BELOW, "{reason}", {"reason": str(error)}) from error
        return space

    def parameters(self) -> Iterator[tuple[str | None, Parameter]]:
        """Returns the group (a model) and the parameter of each entry; the group is None outside of one."""
        return _parameters(self.space)


def _parameters(space: Mapping[str, Any]) -> Iterator[tuple[str | None, Parameter]]:
    for name, entry in space.items():
        if is_group(entry):
            for inner, inner_entry in entry.items():
                yield name, parse_parameter(f"{name}.{inner}", inner_entry)
        else:
            yield None, parse_parameter(name, entry)


def is_group(entry: Any) -> bool:
    """Returns whether an entry of the space is a group of entries, such as those of a model."""
    return (
        isinstance(entry, Mapping)
        and not {"low", "high", "values"} & entry.keys()
        and any(isinstance(value, Mapping | list) for value in entry.values())
    )


def parse_parameter(name: str, entry: Any) -> Parameter:
    """Returns the parameter of an entry of `[tuner.space]`."""
    if isinstance(entry, list):
        entry = {"values": entry}
    if not isinstance(entry, Mapping):
        raise ValueError(
            f"{name} = {entry!r}: give a list of values, or {{low = ..., high = ...}}; a single value "
            "needs no search"
        )
    keys = _CHOICE_KEYS if "values" in entry else _RANGE_KEYS
    for key in entry:
        if key not in keys:
            raise ValueError(f"{name}.{key}: there is no such key. Valid here: {', '.join(keys)}")
    default = _as_scalar(entry.get("default"))
    if "values" in entry:
        if not isinstance(entry["values"], list):
            raise ValueError(f"{name}.values = {entry['values']!r} is not a list")
        return Choice(name, tuple(_as_scalar(value) for value in entry["values"]), default)
    for key in ("low", "high"):
        if key not in entry:
            raise ValueError(f"{name}.{key} is missing; give both {name}.low and {name}.high")
    if not isinstance(entry.get("log", False), bool):
        raise ValueError(f"{name}.log = {entry['log']!r} is neither true nor false")
    return Range(name, entry["low"], entry["high"], entry.get("log", False), default)


def _as_scalar(value: Any) -> Any:
    """Returns a list of integers, such as [64, 32], as the text 64,32: a value has to be a scalar."""
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        return ",".join(map(str, value))
    return value


def parse_layers(value: Value) -> tuple[int, ...]:
    """Returns the sizes in a text such as 64,32."""
    sizes = tuple(int(size) for size in str(value).split(","))
    if any(size < 1 for size in sizes):
        raise ValueError(f"{value!r} has a layer without units")
    return sizes
