"""A configuration file to start from: inferred values, with every setting present or in a comment."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipelines.config.data_url import is_url
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.toml import toml_text
from pipelines.runs.definitions.run_plan import DataPlan

_USES = {"boolean": "category"}
_PATHS = (("data", "path"), ("module", "file"), ("schema", "path"))


def render_plan_file(config: PipelineConfig, plan: DataPlan, folder: Path) -> str:
    """Returns a configuration as TOML; a run with it has the same plan.

    Configured settings are copied. Inferred values and defaults are in comments, so that a column which gives
    the answer away is not accepted unseen. Columns that are the label in other words are left out.
    """
    settings = config.model_dump(mode="json", exclude_unset=True)
    for section, key in _PATHS:
        path = settings[section].get(key) if isinstance(settings.get(section), dict) else None
        if path and not is_url(path):
            settings[section][key] = os.path.relpath(path, folder)
    inferred = _inferred(plan)
    lines = [
        "# A setting in a comment has its default: the value shown, if there is one.",
        f"name = {_toml(config.name)}",
        "",
    ]
    for name, field in PipelineConfig.model_fields.items():
        section = field.alias or name
        value = getattr(config, name)
        if section == "columns":
            lines += ["[columns]", *_columns(config, plan), ""]
        elif isinstance(value, BaseModel):
            lines += [
                f"[{section}]",
                *_settings(value, settings.get(section, {}), inferred.get(section, {})),
                "",
            ]
    return "\n".join(lines)


def _settings(model: BaseModel, configured: Mapping[str, Any], inferred: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, field in type(model).model_fields.items():
        if key in configured and configured[key] is not None:
            lines.append(f"{key} = {_toml(configured[key])}")
            continue
        default = inferred.get(key, field.get_default(call_default_factory=True))
        lines.append(f"# {key} = {'(not set)' if default is None else _toml(default)}")
    return lines


def _inferred(plan: DataPlan) -> dict[str, dict[str, Any]]:
    """Returns, by section, the values that a run infers if the configuration leaves them out."""
    code, dialect = plan.code, plan.profile.dialect
    values: dict[str, dict[str, Any]] = {
        "data": {"delimiter": dialect.delimiter, "quote": dialect.quote, "encoding": plan.texts.encoding},
        "trainer": {"train_steps": code.train_steps, "eval_steps": code.eval_steps},
        "evaluator": {
            "metrics": code.metrics,
            "slices": code.slices,
            "thresholds": list(code.thresholds),
        },
    }
    if code.plan is not None:
        training = code.plan.training
        values["data"]["problem_type"] = code.plan.label.problem_type
        if code.plan.label.problem_type == "binary":
            values["data"]["positive"] = code.plan.label.classes[1]
        for key in ("train_steps", "batch_size", "hidden_units", "learning_rate"):
            values["trainer"][key] = getattr(training, key)
        values["trainer"]["n_trees"] = training.trees.n_trees
    return values


def _columns(config: PipelineConfig, plan: DataPlan) -> list[str]:
    elsewhere = {*config.data.exclude, *config.data.numeric, *config.data.categorical}
    of_classes = {config.data.label} if plan.code.plan and plan.code.plan.label.classes else set()
    copies = {leak.column for leak in plan.leaks if leak.is_copy}
    lines = ["# An entry sets the kind of a column, and accepts that a model may rely on it entirely."]
    for row in plan.columns:
        if row.name in elsewhere:
            continue
        use = "category" if row.name in of_classes else _USES.get(row.kind, row.kind)
        comment = f"{row.use}{'; ' + row.note if row.note else ''}".replace("\n", " ")
        if row.name in config.columns:
            lines.append(f"{_toml(row.name)} = {_toml(config.columns[row.name])}")
        elif row.name in copies:
            lines.append(f'{_toml(row.name)} = "ignore"  # target leakage')
        else:
            shown = use if use in ("number", "category", "date", "list", "text", "id") else "ignore"
            lines.append(f"# {_toml(row.name)} = {_toml(shown)}  # {comment}")
    return lines


def _toml(value: Any) -> str:
    if isinstance(value, BaseModel):
        return _toml(value.model_dump(mode="json", exclude_defaults=True))
    if isinstance(value, dict):
        items = (f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return toml_text(value)
    return json.dumps(value)
