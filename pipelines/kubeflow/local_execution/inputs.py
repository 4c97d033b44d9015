"""Work of KFP's driver before a container starts: resolves inputs and assigns uris to outputs."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.kubeflow.local_execution.bucket import mounted_path

Artifact = dict[str, Any]
"""KFP's `RuntimeArtifact` as parsed JSON."""


@dataclass(frozen=True)
class Values:
    """Inputs or outputs of a task.

    Attributes:
      parameters: Parameters by name.
      artifacts: Artifacts by key, one each.
    """

    parameters: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Artifact] = field(default_factory=dict)


def resolve_inputs(
    task: Mapping[str, Any],
    component: Mapping[str, Any],
    given: Values,
    done: Mapping[str, Values],
    run_id: str,
) -> Values:
    """Returns the inputs of a task.

    Args:
      task: Task of a DAG.
      component: Component of the task.
      given: Inputs of the DAG.
      done: Outputs of the tasks that have ended.
      run_id: Id of the run, which replaces its placeholder.
    """
    declared = component.get("inputDefinitions", {}).get("parameters", {})
    inputs = task.get("inputs", {})
    parameters = {}
    for name, source in inputs.get("parameters", {}).items():
        value = _parameter(source, given, done)
        if isinstance(value, str):
            value = value.replace("{{$.pipeline_job_uuid}}", run_id)
        parameters[name] = _of_type(value, declared[name]["parameterType"])
    artifacts = {}
    for key, source in inputs.get("artifacts", {}).items():
        if "taskOutputArtifact" in source:
            output = source["taskOutputArtifact"]
            artifacts[key] = done[output["producerTask"]].artifacts[output["outputArtifactKey"]]
        else:
            artifacts[key] = given.artifacts[source["componentInputArtifact"]]
    return Values(parameters, artifacts)


def _parameter(source: Mapping[str, Any], given: Values, done: Mapping[str, Values]) -> Any:
    if "runtimeValue" in source:
        return source["runtimeValue"]["constant"]
    if "componentInputParameter" in source:
        return given.parameters[source["componentInputParameter"]]
    output = source["taskOutputParameter"]
    return done[output["producerTask"]].parameters[output["outputParameterKey"]]


def _of_type(value: Any, kind: str) -> Any:
    if kind == "NUMBER_INTEGER" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def new_outputs(component: Mapping[str, Any], task_root: str) -> dict[str, Artifact]:
    """Returns the output artifacts of a task, with their uris.

    Args:
      component: Component of the task.
      task_root: Uri below which they are stored.
    """
    definitions = component.get("outputDefinitions", {}).get("artifacts", {})
    return {
        key: {"name": key, "uri": f"{task_root}/{key}", "type": definition["artifactType"]}
        for key, definition in definitions.items()
    }


def executor_input(
    inputs: Values, outputs: Mapping[str, Artifact], output_files: Mapping[str, str], file: str
) -> dict[str, Any]:
    """Returns KFP's `ExecutorInput`.

    The types of the inputs are empty, as the open-source backend leaves them.

    Args:
      inputs: Inputs of the task.
      outputs: Output artifacts of the task.
      output_files: Files of its output parameters, by name.
      file: Path to which the container writes `ExecutorOutput`.
    """
    return {
        "inputs": {
            "parameterValues": inputs.parameters,
            "artifacts": {
                key: {"artifacts": [{**artifact, "type": {}}]}
                for key, artifact in inputs.artifacts.items()
            },
        },
        "outputs": {
            "parameters": {name: {"outputFile": path} for name, path in output_files.items()},
            "artifacts": {key: {"artifacts": [artifact]} for key, artifact in outputs.items()},
            "outputFile": file,
        },
    }


def substitute(arguments: list[str], call: Mapping[str, Any], folder: str) -> list[str]:
    """Returns the arguments of a container with KFP's placeholders replaced.

    Args:
      arguments: Arguments of the container specification.
      call: KFP's `ExecutorInput`.
      folder: Folder of the local copies of all uris.
    """
    values = {"{{$}}": json.dumps(call)}
    for side in ("inputs", "outputs"):
        for key, listed in call[side]["artifacts"].items():
            uri = listed["artifacts"][0]["uri"]
            values[f"{{{{$.{side}.artifacts['{key}'].uri}}}}"] = uri
            values[f"{{{{$.{side}.artifacts['{key}'].path}}}}"] = f"{folder}/{mounted_path(uri)}"
    for name, value in call["inputs"]["parameterValues"].items():
        text = value if isinstance(value, str) else json.dumps(value)
        values[f"{{{{$.inputs.parameters['{name}']}}}}"] = text
    for name, output in call["outputs"]["parameters"].items():
        values[f"{{{{$.outputs.parameters['{name}'].output_file}}}}"] = output["outputFile"]
    return [_replaced(argument, values) for argument in arguments]


def _replaced(argument: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        if placeholder in argument:
            argument = argument.replace(placeholder, value)
    return argument


def with_identity(artifact: Artifact) -> Artifact:
    """Returns an artifact with a unique name, which identifies it in the cache's key."""
    return {**artifact, "name": f"artifacts/{uuid.uuid4()}"}
