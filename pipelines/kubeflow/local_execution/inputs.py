"""Work of KFP's driver before a container starts: resolves inputs, and puts them into its arguments."""

import json
from collections.abc import Mapping
from typing import Any

Values = dict[str, Any]
"""Parameters that go into or come out of a task, by name. Tasks pass no artifacts: these are in the root."""


def resolve_inputs(
    task: Mapping[str, Any],
    component: Mapping[str, Any],
    given: Values,
    done: Mapping[str, Values],
    run_id: str,
) -> Values:
    declared = component.get("inputDefinitions", {}).get("parameters", {})
    parameters = {}
    for name, source in task.get("inputs", {}).get("parameters", {}).items():
        value = _parameter(source, given, done)
        if isinstance(value, str):
            value = value.replace("{{$.pipeline_job_uuid}}", run_id)
        parameters[name] = _of_type(value, declared[name]["parameterType"])
    return parameters


def _parameter(source: Mapping[str, Any], given: Values, done: Mapping[str, Values]) -> Any:
    if "runtimeValue" in source:
        return source["runtimeValue"]["constant"]
    if "componentInputParameter" in source:
        return given[source["componentInputParameter"]]
    output = source["taskOutputParameter"]
    return done[output["producerTask"]][output["outputParameterKey"]]


def _of_type(value: Any, kind: str) -> Any:
    if kind == "NUMBER_INTEGER" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def substitute(arguments: list[str], inputs: Values, output_files: Mapping[str, str]) -> list[str]:
    """Returns the arguments of a container with KFP's placeholders replaced."""
    values = {}
    for name, value in inputs.items():
        text = value if isinstance(value, str) else json.dumps(value)
        values[f"{{{{$.inputs.parameters['{name}']}}}}"] = text
    for name, file in output_files.items():
        values[f"{{{{$.outputs.parameters['{name}'].output_file}}}}"] = file
    return [_replaced(argument, values) for argument in arguments]


def _replaced(argument: str, values: Mapping[str, str]) -> str:
    for placeholder, value in values.items():
        if placeholder in argument:
            argument = argument.replace(placeholder, value)
    return argument
