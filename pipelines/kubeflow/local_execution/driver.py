"""Work of KFP's driver: reads the compiled YAML, resolves the inputs of a task, and looks into the cache."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pipelines import atomic_files
from pipelines.errors import DamagedFileError

Values = dict[str, Any]
"""Parameters that go into or come out of a task, by name. Tasks pass no artifacts: these are in the root."""


@dataclass(frozen=True)
class CompiledPipeline:
    """The two documents of the YAML."""

    specification: dict[str, Any]  # PipelineSpec of the pipeline
    platform: dict[str, Any] = field(default_factory=dict)  # Kubernetes settings by executor label

    @classmethod
    def parse(cls, text: str) -> "CompiledPipeline":
        documents = list(yaml.safe_load_all(text))
        platform: dict[str, Any] = {}
        for document in documents[1:]:
            kubernetes = document.get("platforms", {}).get("kubernetes", {})
            platform |= kubernetes.get("deploymentSpec", {}).get("executors", {})
        return cls(documents[0], platform)

    @property
    def name(self) -> str:
        return str(self.specification["pipelineInfo"]["name"])

    def component(self, task: Mapping[str, Any]) -> dict[str, Any]:
        component: dict[str, Any] = self.specification["components"][task["componentRef"]["name"]]
        return component

    def container(self, component: Mapping[str, Any]) -> dict[str, Any]:
        executors = self.specification["deploymentSpec"]["executors"]
        container: dict[str, Any] = executors[component["executorLabel"]]["container"]
        return container

    def pod(self, component: Mapping[str, Any]) -> dict[str, Any]:
        pod: dict[str, Any] = self.platform.get(component["executorLabel"], {})
        return pod

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parameters of a run: those that are given, and the defaults of the others."""
        declared = self.specification["root"].get("inputDefinitions", {}).get("parameters", {})
        defaults = {name: definition.get("defaultValue") for name, definition in declared.items()}
        return {**defaults, **given}


class TaskCache:
    """Outputs of a pipeline's tasks that succeeded, by key."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find(self, key: str) -> Values | None:
        """Returns the outputs of the task with this key; None if there are none, or if they are damaged."""
        try:
            return atomic_files.read_model(self._folder / f"{key}.json", Values)
        except (FileNotFoundError, DamagedFileError):
            return None

    def add(self, key: str, outputs: Values) -> None:
        atomic_files.write(self._folder / f"{key}.json", json.dumps(outputs))


def cache_key(
    inputs: Values, component: Mapping[str, Any], container: Mapping[str, Any], pod: Mapping[str, Any]
) -> str:
    """Returns the key of a task: of its inputs, the types of its outputs, its container and its volumes."""
    key = {
        "inputParameterValues": inputs,
        "outputParametersSpec": component.get("outputDefinitions", {}).get("parameters", {}),
        "containerSpec": {
            "image": container["image"],
            "cmdArgs": [*container.get("command", []), *container.get("args", [])],
        },
        "pvcNames": sorted(mount["constant"] for mount in pod.get("pvcMount", [])),
    }
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def resolve_inputs(
    task: Mapping[str, Any],
    component: Mapping[str, Any],
    dag_inputs: Values,
    outputs: Mapping[str, Values],
    run_id: str,
) -> Values:
    """Returns the inputs of a task: constants, inputs of its DAG, and outputs of other tasks."""
    declared = component.get("inputDefinitions", {}).get("parameters", {})
    parameters = {}
    for name, source in task.get("inputs", {}).get("parameters", {}).items():
        if "runtimeValue" in source:
            value = source["runtimeValue"]["constant"]
        elif "componentInputParameter" in source:
            value = dag_inputs[source["componentInputParameter"]]
        else:
            output = source["taskOutputParameter"]
            value = outputs[output["producerTask"]][output["outputParameterKey"]]
        if isinstance(value, str):
            value = value.replace("{{$.pipeline_job_uuid}}", run_id)
        is_whole = isinstance(value, float) and value.is_integer()
        if is_whole and declared[name]["parameterType"] == "NUMBER_INTEGER":
            value = int(value)  # the YAML has only floats
        parameters[name] = value
    return parameters


def substitute(arguments: list[str], inputs: Values, output_files: Mapping[str, str]) -> list[str]:
    """Returns the arguments of a container with KFP's placeholders replaced."""
    values = {}
    for name, value in inputs.items():
        text = value if isinstance(value, str) else json.dumps(value)
        values[f"{{{{$.inputs.parameters['{name}']}}}}"] = text
    for name, file in output_files.items():
        values[f"{{{{$.outputs.parameters['{name}'].output_file}}}}"] = file
    replaced = []
    for argument in arguments:
        for placeholder, text in values.items():
            argument = argument.replace(placeholder, text)
        replaced.append(argument)
    return replaced
