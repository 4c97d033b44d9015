"""The plan of a step: plain values, whose hash names the step before anything runs."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = "{{ROOT}}"
"""Stands for the path of the root, which can be moved."""


def without_root(value: Any, root: Path) -> Any:
    """Returns a JSON value whose texts, which may be JSON themselves, have `ROOT` for the root's path."""
    paths = {re.escape(text) for text in (str(root), json.dumps(str(root))[1:-1])}
    return _replaced(value, re.compile(rf"(?:{'|'.join(paths)})(?![^/\"'\s,;:])"), ROOT)


def with_root(value: Any, root: Path) -> Any:
    """Returns a JSON value whose texts have the root's path for `ROOT`."""
    return _replaced(value, re.compile(re.escape(ROOT)), str(root))


def _replaced(value: Any, pattern: re.Pattern[str], by: str) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda match: by, value)
    if isinstance(value, dict):
        return {key: _replaced(item, pattern, by) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, pattern, by) for item in value]
    return value


def executor_class_path(executor: dict[str, Any]) -> str:
    """Returns the import path of an executor's class; empty for an import."""
    spec = executor.get("spec", {})
    return str(spec.get("classPath") or spec.get("pythonExecutorSpec", {}).get("classPath", ""))


@dataclass(frozen=True)
class OutputRef:
    """An output of a step; it holds in a moved root, too."""

    component: str
    step: str  # name of the step's plan
    key: str


@dataclass(frozen=True)
class FolderRef:
    """A folder of the root that is the output of none of its steps, such as a model of a run on Kubeflow."""

    folder: str  # relative to the root
    type: str  # import path of the artifact's type


@dataclass(frozen=True)
class StepPlan:
    """Everything that the outputs of a component depend on."""

    component: str
    executor: dict[str, Any]  # `type` is the name of TFX's proto, `spec` its content; empty for an Importer
    parameters: dict[str, Any]  # TFX's `NodeParameters`, with `ROOT` in place of the root's path
    inputs: dict[str, tuple[OutputRef | FolderRef, ...]] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)  # import path of the type by key
    fingerprints: dict[str, str] = field(default_factory=dict)  # code, libraries, files from outside the root
    properties: dict[str, dict[str, Any]] = field(default_factory=dict)  # of outputs, known beforehand

    @property
    def class_path(self) -> str:
        """Import path of the executor's class; empty for an import."""
        return executor_class_path(self.executor)

    @cached_property
    def name(self) -> str:
        """The SHA-256 of the plan."""
        values = json.dumps(asdict(self), sort_keys=True, allow_nan=False)
        return hashlib.sha256(values.encode()).hexdigest()
