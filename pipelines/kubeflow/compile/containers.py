"""The container components of the compiled pipeline, through kfp's `container_component`.

Each calls `pipelines.kubeflow.step`. The artifacts are in the root, which every step sees: a task gets
nothing but the key of its step, which KFP's cache compares.
"""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import Any

from kfp import dsl

from pipelines.kubeflow.compile.dag import PLAN
from pipelines.kubeflow.compile.parameters import RuntimeParameter

COMMAND = ("python", "-P", "-m", "pipelines.kubeflow.step")
"""Command of a step. `-P`: a folder `pipelines` in the image's working directory is not ours."""

RUN, KEY = "run", "key"


def output_names(components: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Returns the name of the output of `Plan` with the key of each component."""
    names: dict[str, str] = {}
    for component in components:
        name = _function_name(component)
        while name in {RUN, *taken, *names.values()} or iskeyword(name):
            name += "_"
        names[component] = name
    return names


def component_step(component: str, image: str, root: str, backend: str) -> Any:
    """Returns Kubeflow's component for a TFX component.

    `backend`: `kubeflow`, or `vertex`, whose containers find the id of their run in the `ExecutorInput`.
    """
    run_arguments = ["--executor-input", "{{$}}"] if backend == "vertex" else []
    return _container(
        component, {KEY: str}, image, root, lambda values: ["--key", values[KEY], *run_arguments]
    )


def plan_step(
    config: str, components: Iterable[str], run_parameters: Sequence[RuntimeParameter], image: str, root: str
) -> Any:
    """Returns the component that plans the run; its outputs are the keys of all steps."""
    names = {parameter.key: parameter.name for parameter in run_parameters}
    outputs = output_names(components, names.values())
    parameters: dict[str, Any] = {
        RUN: str,
        **{parameter.name: type(parameter.default) for parameter in run_parameters},
        **{name: dsl.OutputPath(str) for name in outputs.values()},
    }

    def arguments(values: Mapping[str, Any]) -> list[Any]:
        listed = ["--run", values[RUN], "--config", config]
        for key, name in names.items():
            listed += ["--parameter", key, values[name]]
        for component, name in outputs.items():
            listed += ["--key-of", component, values[name]]
        return listed

    return _container(PLAN, parameters, image, root, arguments)


def closing_step(name: str, image: str, root: str) -> Any:
    """Returns the component that records the run, `RECORD`, or why it ended early, `END`."""
    return _container(name, {RUN: str}, image, root, lambda values: ["--run", values[RUN]])


def _container(component: str, parameters: Mapping[str, Any], image: str, root: str, arguments: Any) -> Any:
    """Returns a container component. kfp reads its inputs and outputs from a function's signature."""

    def build(*values: Any) -> dsl.ContainerSpec:
        arguments_by_name = dict(zip(parameters, values, strict=True))
        return dsl.ContainerSpec(
            image=image,
            command=list(COMMAND),
            args=[component, "--root", root, *arguments(arguments_by_name)],
        )

    build.__name__ = _function_name(component)
    build.__doc__ = None
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
            for name, kind in parameters.items()
        ],
        return_annotation=dsl.ContainerSpec,
    )
    return dsl.container_component(build)


def _function_name(component: str) -> str:
    """Returns an identifier for a component, such as `csv_example_gen`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", component).lower()
    name = re.sub(r"[^a-z0-9]+", "_", words).strip("_")
    return name if name[:1].isalpha() else f"step_{name}".rstrip("_")
