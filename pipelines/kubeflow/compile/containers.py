"""The container components of the compiled pipeline, through kfp's `container_component`.

Each has the inputs and outputs of its step, and calls `pipelines.kubeflow.step` with their local paths from
Kubeflow's launcher. A step that may be cached gets the name of its plan, and nothing that differs between
equal runs.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kfp import dsl

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD, Step
from pipelines.kubeflow.compile.parameters import RuntimeParameter

COMMAND = ("python", "-P", "-m", "pipelines.kubeflow.step")
"""Command of a step. `-P`: a folder `pipelines` in the image's working directory is not ours."""

PLAN_PARAMETER, RUN_PARAMETER = "plan", "run"
FINDINGS, OUTCOME = "findings", "outcome"

_KFP_TYPES = {
    "Examples": dsl.Dataset,
    "Model": dsl.Model,
    "PushedModel": dsl.Model,
}
"""KFP's types by the name of TFX's; all other types are plain artifacts."""


def component_step(step: Step, types: Mapping[str, str], image: str, root: str) -> Any:
    """Returns Kubeflow's component for a TFX component.

    Args:
      step: Step of the pipeline.
      types: Import path of the type of each input of the step, by key.
      image: Image of the container.
      root: Folder of the pipeline, as the container sees it.
    """
    is_pusher = step.role == "pusher"
    parameters = {
        **{key: dsl.Input[_kfp_type(types[key])] for key in step.inputs},
        **{key: dsl.Output[_kfp_type(path)] for key, path in step.outputs.items()},
        PLAN_PARAMETER: str,
        **({RUN_PARAMETER: str} if is_pusher else {}),
        FINDINGS: dsl.OutputPath(str),
        **({OUTCOME: dsl.OutputPath(str)} if is_pusher else {}),
    }

    def arguments(given: Mapping[str, Any]) -> list[Any]:
        listed: list[Any] = ["--plan", given[PLAN_PARAMETER]]
        if is_pusher:
            listed += ["--run", given[RUN_PARAMETER], "--outcome-file", given[OUTCOME]]
        for key in step.inputs:
            listed += ["--input", key, given[key].path]
        for key in step.outputs:
            listed += ["--output", key, given[key].path]
        return [*listed, "--findings", given[FINDINGS], "--executor-input", "{{$}}"]

    return _container(step.component, parameters, image, root, arguments)


def plan_step(
    config: PipelineConfig,
    steps: Sequence[Step],
    given: Sequence[RuntimeParameter],
    image: str,
    root: str,
) -> Any:
    """Returns the component that plans the run; its outputs are named after the roles."""
    parameters: dict[str, Any] = {
        RUN_PARAMETER: str,
        **{parameter.name: type(parameter.default) for parameter in given},
        **{step.role: dsl.OutputPath(str) for step in steps},
    }

    def arguments(values: Mapping[str, Any]) -> list[Any]:
        listed = ["--run", values[RUN_PARAMETER], "--config", config.model_dump_json()]
        for parameter in given:
            listed += ["--parameter", parameter.key, values[parameter.name]]
        for step in steps:
            listed += ["--plan-of", step.role, values[step.role]]
        return listed

    return _container(PLAN, parameters, image, root, arguments)


def record_step(steps: Sequence[Step], image: str, root: str) -> Any:
    """Returns the component that records the run."""
    parameters = {RUN_PARAMETER: str, OUTCOME: str, **{step.role: str for step in steps}}

    def arguments(values: Mapping[str, Any]) -> list[Any]:
        listed = ["--run", values[RUN_PARAMETER], "--outcome", values[OUTCOME]]
        for step in steps:
            listed += ["--findings-of", step.component, values[step.role]]
        return listed

    return _container(RECORD, parameters, image, root, arguments)


def end_step(image: str, root: str) -> Any:
    """Returns the exit handler, which records why a run ended early."""
    return _container(
        END,
        {RUN_PARAMETER: str},
        image,
        root,
        lambda values: ["--run", values[RUN_PARAMETER]],
    )


def _container(
    component: str, parameters: Mapping[str, Any], image: str, root: str, arguments: Any
) -> Any:
    """Returns a container component. kfp reads its inputs and outputs from a function's signature."""

    def build(*values: Any) -> dsl.ContainerSpec:
        given = dict(zip(parameters, values, strict=True))
        return dsl.ContainerSpec(
            image=image,
            command=list(COMMAND),
            args=[component, "--root", root, *arguments(given)],
        )

    build.__name__ = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", component).lower()
    build.__doc__ = None
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
            for name, kind in parameters.items()
        ],
        return_annotation=dsl.ContainerSpec,
    )
    return dsl.container_component(build)


def _kfp_type(path: str) -> Any:
    return _KFP_TYPES.get(path.rpartition(".")[2], dsl.Artifact)
