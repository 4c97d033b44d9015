"""The search space: parameters, their ranges, and KerasTuner's form of them, which TFX's artifact has."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Value = bool | int | float | str

Values = dict[str, Value]
"""Values of a trial, by the name of the parameter."""


@dataclass(frozen=True)
class When:
    """Condition of a parameter: it is only searched if another parameter has a certain value."""

    name: str  # Name of the other parameter, which comes earlier in the space
    value: Value


@dataclass(frozen=True)
class Choice:
    """A parameter with a few possible values.

    Attributes:
        name: Name of the parameter.
        values: Its values: texts, numbers or booleans.
        default: Value without a search; None if it is not known.
        when: Condition; None searches it in each trial.

    Raises:
        ValueError: There are no values, two are equal, or the default is none of them.
    """

    name: str
    values: tuple[Value, ...]
    default: Value | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"{self.name} has no values to choose from; list at least one")
        for value in self.values:
            if not isinstance(value, bool | int | float | str):
                raise ValueError(
                    f"{self.name}: {value!r} is a {type(value).__name__}; a value is a text, a number "
                    "or a boolean"
                )
        types = {type(value) for value in self.values}
        if len(types) > 1:
            whole = next((value for value in self.values if type(value) is int), None)
            is_fixed_by_a_point = types == {int, float}
            fix = f": write {whole}.0 in place of {whole}" if is_fixed_by_a_point else ", as in KerasTuner"
            raise ValueError(f"{self.name} = {list(self.values)}: the values must be of one type{fix}")
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"{self.name} = {list(self.values)}: a value is listed twice")
        if self.default is not None and self.default not in self.values:
            raise ValueError(
                f"{self.name}: default = {self.default!r} is not one of the values {list(self.values)}"
            )

    def suggest(self, trial: Any) -> Value:
        """Returns the value that an `optuna.Trial` gives the parameter."""
        value: Value = trial.suggest_categorical(self.name, self.values)
        return value

    def contains(self, value: Value) -> bool:
        """Returns whether it is one of the values."""
        return value in self.values

    def keras_tuner_config(self) -> dict[str, Any]:
        """Returns the parameter as KerasTuner writes it."""
        fields = {"values": list(self.values), "ordered": False}
        return _keras_tuner_config(self, "Choice", self.values[0], fields)


@dataclass(frozen=True)
class Range:
    """A parameter with numbers from `low` to `high`, both included; integers if both are integers.

    Attributes:
        name: Name of the parameter.
        low: Lowest value.
        high: Highest value.
        log: Searches orders of magnitude evenly; for rates and weights.
        default: Value without a search; None if it is not known.
        when: Condition; None searches it in each trial.

    Raises:
        ValueError: `low` is above `high`, is not above 0 with `log`, or the default is outside.
    """

    name: str
    low: float
    high: float
    log: bool = False
    default: float | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        for key in ("low", "high", "default"):
            value = getattr(self, key)
            if value is None and key == "default":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{self.name}.{key} = {value!r} is not a number")
            if not math.isfinite(value):
                raise ValueError(f"{self.name}.{key} = {value} is not finite")
        if self.low > self.high:
            raise ValueError(
                f"{self.name}.low = {self.low} is above {self.name}.high = {self.high}; swap the two"
            )
        if self.log and self.low <= 0:
            raise ValueError(
                f"{self.name}.low = {self.low} has no logarithm; with log = true it must be above 0"
            )
        if self.default is not None and not self.contains(self.default):
            raise ValueError(
                f"{self.name}.default = {self.default} is not between low = {self.low} and high = {self.high}"
            )

    @property
    def is_whole(self) -> bool:
        """True if its values are integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def suggest(self, trial: Any) -> Value:
        """Returns the value that an `optuna.Trial` gives the parameter."""
        suggest = trial.suggest_int if self.is_whole else trial.suggest_float
        value: Value = suggest(self.name, self.low, self.high, log=self.log)
        return value

    def contains(self, value: Value) -> bool:
        """Returns whether a value is in the range."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and self.low <= float(value) <= self.high

    def keras_tuner_config(self) -> dict[str, Any]:
        """Returns the parameter as KerasTuner writes it."""
        fields = {
            "min_value": self.low,
            "max_value": self.high,
            "step": 1 if self.is_whole and not self.log else None,
            "sampling": "log" if self.log else "linear",
        }
        return _keras_tuner_config(self, "Int" if self.is_whole else "Float", self.low, fields)


Parameter = Choice | Range


@dataclass(frozen=True)
class SearchSpace:
    """The parameters that are searched, each after the parameter that its condition names.

    Raises:
        ValueError: There are none, or two have the same name.
    """

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise ValueError("The search space has no parameters; name at least one")
        if len(set(names)) < len(names):
            raise ValueError(f"The search space has a parameter twice: {', '.join(names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of parameters that are conditions of others: trials that differ in them are not alike."""
        return tuple(dict.fromkeys(parameter.when.name for parameter in self.parameters if parameter.when))

    @property
    def defaults(self) -> Values | None:
        """The default of each parameter; None if one has none."""
        values: Values = {}
        for parameter in self.parameters:
            if is_active(parameter, values):
                if parameter.default is None:
                    return None
                values[parameter.name] = parameter.default
        return values

    def contains(self, values: Mapping[str, Value]) -> bool:
        """Returns whether values are those of a trial: each parameter whose condition is met has one."""
        active = [parameter for parameter in self.parameters if is_active(parameter, values)]
        return set(values) == {parameter.name for parameter in active} and all(
            parameter.contains(values[parameter.name]) for parameter in active
        )

    def suggest(self, trial: Any) -> Values:
        """Returns the values that an `optuna.Trial` gives the parameters whose conditions are met."""
        values: Values = {}
        for parameter in self.parameters:
            if is_active(parameter, values):
                values[parameter.name] = parameter.suggest(trial)
        return values

    def keras_tuner_config(self, values: Mapping[str, Value]) -> dict[str, Any]:
        """Returns values as KerasTuner's `HyperParameters.get_config()` does, for JSON."""
        return {
            "space": [parameter.keras_tuner_config() for parameter in self.parameters],
            "values": dict(values),
        }

    def as_json(self) -> list[dict[str, Any]]:
        """Returns the parameters as plain values."""
        return [asdict(parameter) for parameter in self.parameters]

    @staticmethod
    def from_json(fields: Iterable[Mapping[str, Any]]) -> "SearchSpace":
        """Returns the space of `as_json`."""
        return SearchSpace(tuple(_parse_parameter(parameter) for parameter in fields))


def is_active(parameter: Parameter, values: Mapping[str, Value]) -> bool:
    """Returns True if the values meet a parameter's condition."""
    when = parameter.when
    return when is None or values.get(when.name) == when.value


def _parse_parameter(fields: Mapping[str, Any]) -> Parameter:
    settings = dict(fields)
    when = settings.pop("when", None)
    settings["when"] = When(**when) if when else None
    if "values" in settings:
        return Choice(**{**settings, "values": tuple(settings["values"])})
    return Range(**settings)


def _keras_tuner_config(
    parameter: Parameter, kind: str, fallback: Value, fields: Mapping[str, Any]
) -> dict[str, Any]:
    when = parameter.when
    conditions: Sequence[Mapping[str, Any]] = ()
    if when is not None:
        parent = {"name": when.name, "values": [when.value]}
        conditions = ({"class_name": "Parent", "config": parent},)
    default = fallback if parameter.default is None else parameter.default
    common = {"name": parameter.name, "default": default, "conditions": list(conditions)}
    return {"class_name": kind, "config": {**common, **fields}}
