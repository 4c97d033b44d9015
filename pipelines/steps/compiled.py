"""A pipeline as TFX compiles it. What cannot be run as steps is refused by name, before anything runs."""

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from tfx.components.example_gen import driver as example_gen_driver
from tfx.dsl.compiler import compiler, constants
from tfx.dsl.components.base import base_driver
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import RESOLVER_STRATEGY_CLASS, Resolver
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import runtime_parameter_utils

from components.nearest import nearest_first
from pipelines.errors import BadInputError

_FOLDER_NAME = re.compile(r"\w[\w.-]*")
_EXECUTORS = ("PythonClassExecutableSpec", "BeamExecutableSpec")
_ADVICE = "run it with TFX's own LocalDagRunner, or leave it out"


class CompiledDefinition:
    """A pipeline as TFX compiles it."""

    def __init__(self, pipeline: Pipeline, artifacts: str):
        for component in pipeline.components:
            if isinstance(component, Pipeline):
                raise rejected(component.id, "a pipeline inside the pipeline", _ADVICE)
            _check_names(component)
        # TFX compiles neither a 0 nor an empty text as a default.
        self._defaults = {
            value.name: str(value.default)
            for component in pipeline.components
            for value in component.exec_properties.values()
            if isinstance(value, RuntimeParameter) and value.default is not None
        }
        pipeline.pipeline_info.pipeline_root = artifacts
        self._artifacts = artifacts
        self._definition = compiler.Compiler().compile(pipeline)
        self.nodes = {node.pipeline_node.node_info.id: node.pipeline_node for node in self._definition.nodes}
        for component in pipeline.components:
            self._check_component(component)

    @cached_property
    def _deployment(self) -> Any:
        return runner_utils.extract_local_deployment_config(self._definition)

    def executor(self, component: str) -> Any:
        return runner_utils.extract_executor_spec(self._deployment, component)

    @property
    def runtime_parameters(self) -> dict[str, Any]:
        """The protos of the user's RuntimeParameters, by name."""
        own = (constants.PIPELINE_RUN_ID_PARAMETER_NAME, constants.PIPELINE_ROOT_PARAMETER_NAME)
        return {
            parameter.name: parameter
            for parameter in _runtime_parameters(self._definition)
            if parameter.name not in own
        }

    def parameter_values(self, parameters: Mapping[str, str]) -> dict[str, int | float | str]:
        """Returns a value for each RuntimeParameter: the given one, or its default."""
        declared = self.runtime_parameters
        if unknown := [name for name in parameters if name not in declared]:
            names = nearest_first(unknown[0], sorted(declared))
            raise BadInputError(
                f"--param {unknown[0]}={parameters[unknown[0]]}: the pipeline has no such "
                f"RuntimeParameter. Its parameters: {', '.join(names) or 'none'}"
            )
        texts = {**self._defaults, **parameters}
        values: dict[str, int | float | str] = {}
        for name, parameter in sorted(declared.items()):
            kind = parameter.default_value.WhichOneof("value")
            if name in texts:
                values[name] = _typed(parameter, texts[name])
            elif kind is not None:
                values[name] = getattr(parameter.default_value, kind)
            else:
                raise BadInputError(
                    f"The RuntimeParameter {name!r} has no default value. Give --param {name}=VALUE"
                )
        return values

    def substitute(self, run_id: str, parameters: Mapping[str, str]) -> None:
        """Puts the values of RuntimeParameters into the nodes."""
        values = self.parameter_values(parameters)
        runtime_parameter_utils.substitute_runtime_parameter(
            self._definition,
            {
                constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id,
                constants.PIPELINE_ROOT_PARAMETER_NAME: self._artifacts,
                **values,
            },
        )

    def _check_component(self, component: BaseNode) -> None:
        node = self.nodes[component.id]
        if node.inputs.conditionals:
            raise rejected(component.id, "a component in a Cond", _ADVICE)
        if isinstance(component, Resolver):
            if component.exec_properties.get(RESOLVER_STRATEGY_CLASS) is None:
                what = "a Resolver with a resolver function"
                raise rejected(component.id, what, "use a strategy_class")
            return
        if any(spec.HasField("input_graph_ref") for spec in node.inputs.inputs.values()):
            what = "a component in a ForEach, or one with a resolver function"
            raise rejected(component.id, what, _ADVICE)
        if isinstance(component, Importer):
            return
        if type(self.executor(component.id)).DESCRIPTOR.name not in _EXECUTORS:
            raise rejected(component.id, "a component that runs in a container", _ADVICE)
        driver = getattr(component, "driver_class", None) or base_driver.BaseDriver
        if driver is not base_driver.BaseDriver and not issubclass(driver, example_gen_driver.Driver):
            what = f"the driver {driver.__module__}.{driver.__qualname__}, which reads ML Metadata,"
            raise rejected(component.id, what, "remove its DRIVER_CLASS")


def upstream_ids(pipeline: Pipeline, ids: Collection[str]) -> dict[str, list[str]]:
    """Returns the upstream components of each component, directly or through some that are not in `ids`."""

    def above(component: BaseNode) -> set[str]:
        names: set[str] = set()
        for upstream in component.upstream_nodes:
            names |= {upstream.id} if upstream.id in ids else above(upstream)
        return names

    return {
        component.id: sorted(above(component)) for component in pipeline.components if component.id in ids
    }


def rejected(component: str, what: str, advice: str) -> BadInputError:
    """Returns the error about a part of a pipeline that cannot be run as a step."""
    return BadInputError(f"{component}: {what} cannot be run as a step: {advice}")


def type_path(artifact_type: type) -> str:
    return f"{artifact_type.__module__}.{artifact_type.__qualname__}"


def _check_names(component: BaseNode) -> None:
    if not _FOLDER_NAME.fullmatch(component.id):
        what = "a component whose id cannot be a folder name"
        raise rejected(component.id, what, "use with_id")
    for key, channel in component.outputs.items():
        if "." in channel.type.__qualname__:
            raise rejected(
                component.id,
                f"the output {key!r}, whose type {type_path(channel.type)} is defined inside a class or "
                "function,",
                "define it at the top level of its module",
            )


def _runtime_parameters(message: Any) -> list[Any]:
    """Returns all RuntimeParameters in a proto, at any depth."""
    if message.DESCRIPTOR.name == "RuntimeParameter":
        return [message]
    parameters = []
    for descriptor, value in message.ListFields():
        if descriptor.type != descriptor.TYPE_MESSAGE:
            continue
        entry = descriptor.message_type
        if entry.GetOptions().map_entry:
            if entry.fields_by_name["value"].type == descriptor.TYPE_MESSAGE:
                values = list(value.values())
            else:
                values = []
        else:
            values = [value] if descriptor.message_type and hasattr(value, "ListFields") else list(value)
        for part in values:
            parameters += _runtime_parameters(part)
    return parameters


def _typed(parameter: Any, text: str) -> int | float | str:
    kind = type(parameter).Type.Name(parameter.type)
    try:
        return {"INT": int, "DOUBLE": float}.get(kind, str)(text)
    except ValueError as error:
        raise BadInputError(f"--param {parameter.name}={text}: the pipeline declares it as {kind}") from error
