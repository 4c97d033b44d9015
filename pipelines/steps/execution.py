"""Runs the executor of a component by TFX's operators, without a metadata store."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import RunFailedError

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

    Artifacts = dict[str, list[Artifact]]


def run_executor(
    component: str,
    executor: Mapping[str, Any],
    parameters: Mapping[str, Any],
    inputs: "Artifacts",
    outputs: "Artifacts",
    scratch: Path,
    beam_options: Sequence[str] = (),
    run_id: str | None = None,
) -> "Artifacts":
    """Runs the executor of a component, and returns its output artifacts, each below its given URI.

    `parameters`: execution properties, as TFX's `NodeParameters`; those that depend on inputs are resolved.
    `outputs`: output artifacts by key, one each; their folders exist.
    `beam_options`: beam options of this run; they take precedence over the component's.
    """
    from google.protobuf import json_format
    from tfx.orchestration import data_types_utils
    from tfx.orchestration.portable import data_types, inputs_utils
    from tfx.proto.orchestration import pipeline_pb2

    proto = json_format.ParseDict(parameters, pipeline_pb2.NodeParameters())
    node = pipeline_pb2.PipelineNode()
    node.node_info.id = component
    for name in ("stateful", "temporary"):
        (scratch / name).mkdir()
    info = data_types.ExecutionInfo(
        execution_id=1,
        input_dict=inputs,
        output_dict=outputs,
        exec_properties=data_types_utils.build_parsed_value_dict(
            inputs_utils.resolve_parameters_with_schema(proto)
        ),
        execution_output_uri=str(scratch / "executor_output.pb"),
        stateful_working_dir=str(scratch / "stateful"),
        tmp_dir=str(scratch / "temporary"),
        pipeline_node=node,
        pipeline_info=pipeline_pb2.PipelineInfo(id=component),
        pipeline_run_id=run_id,
    )
    info.exec_properties |= _dynamic_properties(proto, info)
    result = _operator(executor, beam_options)(info)
    for key, made in result.output_artifacts.items() if result else ():
        if len(made.artifacts) != 1:
            raise RunFailedError(
                component,
                f"the output {key!r} has {len(made.artifacts)} artifacts; steps keep one for each output",
            )
        (artifact,) = outputs[key]
        uri, made_at = artifact.uri, made.artifacts[0].uri
        artifact.set_mlmd_artifact(made.artifacts[0])
        artifact.uri = made_at if made_at.startswith(f"{uri}/") else uri
    return outputs


def _dynamic_properties(parameters: Any, info: Any) -> dict[str, Any]:
    """Returns the properties that are values of inputs, such as `count.outputs["n"].future()[0].value`."""
    from tfx.dsl.compiler import placeholder_utils
    from tfx.orchestration.portable import inputs_utils

    context = placeholder_utils.ResolutionContext(exec_info=info)
    properties: dict[str, Any] = inputs_utils.resolve_dynamic_parameters(parameters, context)
    return properties


def _operator(executor: Mapping[str, Any], beam_options: Sequence[str]) -> Callable[[Any], Any]:
    """Returns TFX's operator that runs this kind of executor."""
    from google.protobuf import json_format
    from tfx.orchestration.portable import beam_executor_operator, python_executor_operator
    from tfx.proto.orchestration import executable_spec_pb2

    operators: dict[str, Any] = {
        "BeamExecutableSpec": beam_executor_operator.BeamExecutorOperator,
        "PythonClassExecutableSpec": python_executor_operator.PythonExecutorOperator,
    }
    kind = executor["type"]
    spec = json_format.ParseDict(executor["spec"], getattr(executable_spec_pb2, kind)())
    if kind == "BeamExecutableSpec":
        for option in beam_options:
            spec.beam_pipeline_args_placeholders.add().value.string_value = option
    run: Callable[[Any], Any] = operators[kind](spec).run_executor
    return run
