"""Reads a configuration: TOML file < --data/--label < --set, validated once."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from components.nearest import nearest_first
from pipelines.config.data_url import is_url
from pipelines.config.pipeline_config import PipelineConfig, _default_name
from pipelines.config.toml import read_toml, split_setting, toml_text, toml_value
from pipelines.config.tuner import BELOW
from pipelines.errors import BadInputError, shown


def load_config(
    config_file: Path | None = None,
    data: str | None = None,
    label: str | None = None,
    settings: Sequence[str] = (),
    sections: Mapping[str, Any] | None = None,
) -> PipelineConfig:
    """Returns the validated configuration.

    Relative `data.path`, `module.file`, `schema.path` and `pipeline.extend` of a configuration file are
    relative to that file; those of the command line to the working directory.
    """
    tree: dict[str, Any] = {}
    if config_file is not None:
        tree = read_toml(config_file)
        _anchor_paths(tree, config_file.parent)
    if data is not None:
        _assign(tree, ["data", "path"], data, f"--data {data}")
    if label is not None:
        _assign(tree, ["data", "label"], label, f"--label {label}")
    assign_all(tree, settings)
    _merge(tree, sections or {})
    check_has_no_pipeline(tree, str(config_file or "The configuration"))
    for key in ("path", "label"):
        section = tree.get("data", {})
        if isinstance(section, dict) and key not in section:
            option = "--data FILE_OR_DIR" if key == "path" else "--label COLUMN"
            raise BadInputError(f"data.{key} is missing: give {option} or a --config file that sets it.")
    if not tree.get("name") and isinstance(tree["data"], dict):
        tree["name"] = _default_name(str(tree["data"].get("path", "")))
    try:
        return PipelineConfig.model_validate(tree)
    except ValidationError as error:
        raise BadInputError(explain(error, config_file)) from error


def read_tree(config_file: Path | None, settings: Sequence[str]) -> dict[str, Any]:
    """Returns a configuration that is not validated yet, with values of `--set`."""
    tree = read_toml(config_file) if config_file else {}
    assign_all(tree, settings)
    return tree


def is_of_tfx_pipeline(tree: Mapping[str, Any]) -> bool:
    """Returns True for the configuration of a TFX pipeline, False for that of a pipeline from a CSV."""
    section = tree.get("pipeline")
    return section is not None and not (isinstance(section, dict) and "extend" in section)


def check_has_no_pipeline(tree: Mapping[str, Any], where: str) -> None:
    """Checks that a configuration is not for a TFX pipeline of the user's own."""
    if is_of_tfx_pipeline(tree):
        raise BadInputError(
            f"{where} has [pipeline], a TFX pipeline of your own; this command needs a pipeline from a CSV, "
            "with [data]."
        )


def assign_all(tree: dict[str, Any], settings: Sequence[str]) -> None:
    """Puts the values of `--set` into a configuration that is not validated yet."""
    for setting in settings:
        keys, key, value = split_setting(setting)
        if keys[0] == "columns" and len(keys) > 2:
            name = toml_text(".".join(keys[1:]))
            raise BadInputError(
                f"--set {setting}: a column's name with a dot is quoted: --set 'columns.{name}={value}'."
            )
        _assign(tree, keys, toml_value(value, key), f"--set {setting}")


def _merge(tree: dict[str, Any], sections: Mapping[str, Any]) -> None:
    """Puts values from Python into a configuration that is not validated yet."""
    for key, value in sections.items():
        if isinstance(value, Mapping) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = dict(value) if isinstance(value, Mapping) else value


def _anchor_paths(tree: dict[str, Any], folder: Path) -> None:
    for section, key in (("data", "path"), ("module", "file"), ("schema", "path"), ("pipeline", "extend")):
        values = tree.get(section)
        if isinstance(values, dict) and isinstance(values.get(key), str) and not is_url(values[key]):
            values[key] = str(folder / values[key])


def _assign(tree: dict[str, Any], keys: list[str], value: Any, origin: str) -> None:
    for depth, key in enumerate(keys[:-1]):
        tree = tree.setdefault(key, {})
        if isinstance(tree, list):
            name = ".".join(keys[: depth + 1])
            raise BadInputError(f"{origin}: {name} is a list. Set all of it: --set '{name}=[...]'.")
        if not isinstance(tree, dict):
            raise BadInputError(f"{origin}: {'.'.join(keys[: depth + 1])} is not a section.")
    tree[keys[-1]] = value


def explain(error: ValidationError, config_file: Path | None, model: type[BaseModel] = PipelineConfig) -> str:
    """Returns a message with the faults of a configuration and their fixes."""
    lines = []
    for problem in error.errors():
        location = [str(part) for part in problem["loc"]]
        key = ".".join(location)
        if problem["type"] == "extra_forbidden":
            nearest = nearest_first(location[-1], _valid_keys(problem["loc"][:-1], model))
            meant, advice = nearest[0], f"Valid here: {', '.join(nearest)}."
            for section, field in model.model_fields.items():
                if key in getattr(field.annotation, "model_fields", ()):
                    meant = f"{section}.{key}"
                    advice = _why_wrong(field.annotation, {key: problem["input"]}) or advice
                    break
            lines.append(f"{key}{_assigned(problem)}: there is no such key. Did you mean {meant}? {advice}")
        elif problem["type"] == "missing":
            lines.append(f"{key} is missing.")
        elif problem["type"] == BELOW:
            lines.append(f"{key}.{problem['msg']}.")
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            where = f"{key}{_assigned(problem)}: " if key else ""  # no key: several sections are at fault
            lines.append(f"{where}{reason[:1].lower() + reason[1:]}.")
    source = f"{config_file}: " if config_file else ""
    return "\n".join(source + line for line in lines)


def _why_wrong(section: Any, value: dict[str, Any]) -> str:
    """Returns the reasons why a value is not valid in a section; empty if it is."""
    try:
        section.model_validate(value)
    except ValidationError as error:
        reasons = [problem["msg"].removeprefix("Value error, ") for problem in error.errors()]
        return f"There, {'; '.join(reasons)}."
    return ""


def _assigned(problem: Any) -> str:
    """Returns ` = VALUE` for a message; empty for what may be a secret, such as an address of `[notify]`."""
    location, text = problem["loc"], _text(problem["input"])
    if re.search(r"://\S*[@?]", text):
        return ""
    if not location or (location[0] == "notify" and location[1:2] not in (("on",), ("timeout_secs",))):
        return ""
    return f" = {shown(text)}"


def _text(value: Any) -> str:
    """Returns the TOML of a value, or else its type."""
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or an integer of too many digits
        return f"({type(value).__name__})"


def _valid_keys(location: tuple[Any, ...], model: Any) -> list[str]:
    for part in location:
        if isinstance(part, int):
            continue
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if part not in fields:  # a name that the user chose, such as a component's
            continue
        annotation = fields[part].annotation
        candidates = [annotation, *_arguments(annotation)]
        model = next(kind for kind in candidates if isinstance(kind, type) and issubclass(kind, BaseModel))
    return [field.alias or name for name, field in model.model_fields.items()]


def _arguments(annotation: Any) -> list[Any]:
    arguments: list[Any] = []
    for argument in getattr(annotation, "__args__", ()):
        arguments += [argument, *_arguments(argument)]
    return arguments
