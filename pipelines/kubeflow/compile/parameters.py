"""Parameters of a compiled pipeline: keys of the configuration, with their values as defaults."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

from pydantic import ValidationError

from components.nearest import nearest_first
from pipelines.config.load import explain, is_of_tfx_pipeline
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import AnyConfig, TfxPipelineConfig
from pipelines.config.toml import flat_settings
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.given_parameters import typed_parameters

_UNSET = {"trainer.train_steps": 0, "trainer.eval_steps": 0}
"""Keys that are always parameters, and the placeholder for their default."""

_OF_DEFINITION = "pipeline.parameters."
"""Keys of the RuntimeParameters of a TFX pipeline of the user's own."""

_RESERVED = ("run",)
"""Names of the parameters that `Plan` has in every pipeline."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SCALARS = (bool, int, float, str)
_PARAMETER_TYPES = {bool: "BOOLEAN", int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE", str: "STRING"}


@dataclass(frozen=True)
class RuntimeParameter:
    """A parameter of the compiled pipeline."""

    key: str  # Key of the configuration, such as `trainer.train_steps`
    default: bool | int | float | str  # Value in a run that does not set the parameter

    @property
    def name(self) -> str:
        """Name on Kubeflow, such as `train_steps`."""
        if self.key.startswith(_OF_DEFINITION):
            return re.sub(r"\W", "_", self.key.removeprefix(_OF_DEFINITION), flags=re.ASCII)
        section, _, name = self.key.rpartition(".")
        return name if section == "trainer" and self.key in _UNSET else self.key.replace(".", "_")


def runtime_parameters(config: PipelineConfig, asked_for: Iterable[str] = ()) -> tuple[RuntimeParameter, ...]:
    values = flat_settings(config.model_dump(mode="json", exclude={"kubeflow"}))
    keys = dict.fromkeys(("data.path", *_UNSET, *config.kubeflow.parameters, *asked_for))
    parameters = []
    for key in keys:
        if key not in values:
            nearest = nearest_first(key, values)
            raise BadInputError(
                f"kubeflow.parameters: there is no key {key!r}. Did you mean {nearest[0]}? Nearest: "
                f"{', '.join(nearest[:5])}."
            )
        default = values[key] if values[key] is not None else _UNSET.get(key)
        if default is None:
            raise BadInputError(
                f"kubeflow.parameters: {key} has no value for the default, and the server refuses a run "
                f"without one. Set {key} in the configuration."
            )
        if not isinstance(default, _SCALARS):
            raise BadInputError(
                f"kubeflow.parameters: {key} = {default!r} is a {type(default).__name__}. Parameters are "
                "strings, numbers or booleans."
            )
        parameters.append(RuntimeParameter(key, default))
    _check_names(parameters)
    return tuple(parameters)


def definition_parameters(config: TfxPipelineConfig) -> tuple[RuntimeParameter, ...]:
    """Returns the parameters of a compiled TFX pipeline: its RuntimeParameters, all of which have values."""
    values = config.pipeline.parameters.items()
    parameters = [RuntimeParameter(_OF_DEFINITION + name, value) for name, value in values]
    _check_names(parameters)
    return tuple(parameters)


def names_on_kubeflow(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the values of a TFX pipeline's RuntimeParameters by their names on Kubeflow."""
    return {RuntimeParameter(_OF_DEFINITION + name, text).name: text for name, text in texts.items()}


def check_given(config: PipelineConfig, texts: Mapping[str, str]) -> None:
    """Checks the parameters of a run, before the pipeline is compiled."""
    declared = {
        parameter.name: {"parameterType": _PARAMETER_TYPES[type(parameter.default)]}
        for parameter in runtime_parameters(config)
    }
    typed_parameters({"root": {"inputDefinitions": {"parameters": declared}}}, texts)


def _check_names(parameters: Iterable[RuntimeParameter]) -> None:
    keys: dict[str, str] = {}
    for parameter in parameters:
        name, key = parameter.name, parameter.key.removeprefix(_OF_DEFINITION)
        is_own = key != parameter.key
        where = "RuntimeParameter" if is_own else "kubeflow.parameters"
        if not _NAME.fullmatch(name) or iskeyword(name) or name in _RESERVED:
            raise BadInputError(
                f"{where}: {key} would be the parameter {name!r}. A parameter's name has ASCII letters, "
                f"digits and '_', begins with a letter, and is not a Python keyword or {_RESERVED[0]!r}. "
                f"{'Give it another name' if is_own else 'Leave it out'}."
            )
        if name in keys:
            fix = "Give one of them another name" if is_own else "Leave one of them out"
            raise BadInputError(
                f"{where}: {keys[name]} and {key} would both be the parameter {name!r}. {fix}."
            )
        keys[name] = key


def configuration_of_run(text: str, settings: Sequence[Sequence[str]]) -> AnyConfig:
    """Returns a configuration with the parameters of a run applied."""
    tree: dict[str, Any] = json.loads(text)
    defaults = flat_settings(tree)
    for key, value in settings:
        if key not in defaults:
            raise BadInputError(
                f"The parameter {key} is not a key of the configuration that was compiled. Received: "
                f"{key}={value!r}"
            )
        section, name = _place(tree, key)
        section[name] = _value(key, value, defaults[key])
    kind = TfxPipelineConfig if is_of_tfx_pipeline(tree) else PipelineConfig
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise BadInputError(explain(error, None)) from error


def _place(tree: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """Returns the section that holds a key of `flat_settings`, and the name in it, which may have dots."""
    if key in tree:
        return tree, key
    for name, value in tree.items():
        rest = key.removeprefix(f"{name}.")
        if isinstance(value, dict) and rest != key and rest in flat_settings(value):
            return _place(value, rest)
    raise LookupError(key)


def _value(key: str, text: str, default: Any) -> Any:
    """Returns the value of a parameter from the launcher's text; None for the placeholder of no value."""
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadInputError(f"The parameter {key} takes a number. Received: {text!r}") from error
    if key in _UNSET and value == _UNSET[key]:
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value
