"""The compiled pipeline: a PipelineSpec of schema 2.1.0 as YAML, for the open-source backend or Vertex."""

import inspect
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.config.kubeflow import KubeflowConfig
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.config.tfx_pipeline import AnyConfig, TfxPipelineConfig
from pipelines.kubeflow.compile.admission import (
    COMPONENTS,
    check_config,
    check_for_steps,
    check_names,
    check_specification,
    check_texts,
)
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD, Dag, dag_of_csv, dag_of_definition
from pipelines.kubeflow.compile.parameters import RuntimeParameter, definition_parameters, runtime_parameters
from pipelines.kubeflow.compile.task_settings import apply_settings
from pipelines.kubeflow.compile.user_code import check_paths, loaded, seen_path
from pipelines.runs.definitions.evaluation import check_problem_is_known


def compile_pipeline(config: AnyConfig, parameters: Iterable[str] = ()) -> str:
    """Returns the YAML of a pipeline. The same configuration gives the same bytes.

    It does not read the data: `Plan` does so in each run.

    `parameters`: keys that become parameters, in addition to `kubeflow.parameters`; for a pipeline from a
    CSV.
    """
    check_config(config)
    check_for_steps(config)
    settings = config.kubeflow
    if isinstance(config, TfxPipelineConfig):
        config, dag = _definition_tasks(config)
        run_parameters = definition_parameters(config)
        name = check_names(settings, dag.name, dag.upstream)
    else:
        run_parameters = runtime_parameters(config, parameters)
        config, dag = _csv_tasks(config)
        name = check_names(settings, dag.name, {*COMPONENTS, *dag.upstream})
    planned = config.model_copy(update={"kubeflow": settings.without_env()}).model_dump_json()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kfp warns about its versions
        text = _compile(name, settings, planned, dag, run_parameters)
    check_specification(text)
    return text


def _csv_tasks(config: PipelineConfig) -> tuple[PipelineConfig, Dag]:
    """Returns the configuration as the steps see it, and the tasks."""
    check_problem_is_known(config)
    dag = dag_of_csv(config)
    if config.pipeline is None:
        return config, dag
    file, _, function = config.pipeline.extend.rpartition(":")
    extend = f"{seen_path(config.kubeflow, 'pipeline.extend', file)}:{function}"
    extension = config.pipeline.model_copy(update={"extend": extend})
    return config.model_copy(update={"pipeline": extension}), dag


def _definition_tasks(config: TfxPipelineConfig) -> tuple[TfxPipelineConfig, Dag]:
    """Returns the configuration as the steps see it, with a value for each parameter; and the tasks."""
    source = config.pipeline
    file = Path(source.file).resolve()
    seen = seen_path(config.kubeflow, "pipeline.file", str(file))
    with loaded(source) as pipeline:
        dag = dag_of_definition(config, pipeline)
        check_paths(config.kubeflow, pipeline, file.parent)
    changes = {"file": seen, "parameters": dict(dag.parameters)}
    config = config.model_copy(update={"pipeline": source.model_copy(update=changes)})
    check_texts(config)  # the definition's default values, too
    return config, dag


def _compile(
    name: str, settings: KubeflowConfig, config: str, dag: Dag, run_parameters: Sequence[RuntimeParameter]
) -> str:
    from kfp import compiler, dsl

    from pipelines.kubeflow.compile import containers

    image, root = str(settings.image), str(settings.root)
    # The id of the run; on Vertex its name, which is in the paths of its files, too.
    is_vertex = settings.backend == "vertex"
    run = dsl.PIPELINE_JOB_NAME_PLACEHOLDER if is_vertex else dsl.PIPELINE_JOB_ID_PLACEHOLDER

    def build(*channels: Any) -> None:
        """Makes the tasks, when kfp calls it."""
        parameters = dict(zip((item.name for item in run_parameters), channels, strict=True))
        end = containers.closing_step(END, image, root)(run=run)
        apply_settings(end, settings, END)
        with dsl.ExitHandler(end, name="run"):
            plan_step = containers.plan_step(config, dag.upstream, run_parameters, image, root)
            plan = plan_step(run=run, **parameters)
            apply_settings(plan, settings, PLAN)
            keys = containers.output_names(dag.upstream, parameters)
            tasks: dict[str, Any] = {}
            for component, upstream in dag.upstream.items():
                step = containers.component_step(component, image, root, settings.backend)
                task = step(key=plan.outputs[keys[component]])
                tasks[component] = task.after(*(tasks[other] for other in upstream))
                apply_settings(task, settings, component)
            record = containers.closing_step(RECORD, image, root)(run=run).after(plan, *tasks.values())
            apply_settings(record, settings, RECORD)

    build.__name__ = "pipeline"
    build.__doc__ = None
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # the run's parameters
        [
            inspect.Parameter(
                item.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=item.default,
                annotation=type(item.default),
            )
            for item in run_parameters
        ]
    )
    pipeline = dsl.pipeline(build, name=name, pipeline_root=settings.pipeline_root)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        text = file.read_bytes().decode()
    for value in (item.default for item in run_parameters if isinstance(item.default, str)):
        # kfp writes it into a comment, with its line breaks.
        text = text.replace(f"[Default: '{value}']", f"[Default: '{' '.join(value.splitlines())}']")
    return text
