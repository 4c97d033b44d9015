"""The compiled pipeline: a PipelineSpec of schema 2.1.0 as YAML, for the open-source backend or Vertex."""

import inspect
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.kubeflow.compile.admission import check_config, check_specification, pipeline_name
from pipelines.kubeflow.compile.beam_steps import check_for_steps
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD, Step, pipeline_steps
from pipelines.kubeflow.compile.parameters import RuntimeParameter, runtime_parameters


def compile_pipeline(config: PipelineConfig, parameters: Iterable[str] = ()) -> str:
    """Returns the YAML of a pipeline. The same configuration gives the same bytes.

    It does not read the data: `Plan` does so in each run.

    Args:
      config: The configuration.
      parameters: Keys that become parameters, in addition to `kubeflow.parameters`.

    Raises:
      BadInputError: Kubeflow would refuse the pipeline, or its steps could not work.
    """
    from pipelines.definitions.evaluation import check_problem_is_known  # imports TensorFlow

    check_config(config)
    check_problem_is_known(config)
    check_for_steps(config)
    given = runtime_parameters(config, parameters)
    steps = pipeline_steps(
        curated_schema=config.schema_.path is not None, tunes=config.tuner is not None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kfp warns of its own versions
        text = _compile(config, steps, given)
    check_specification(text)
    return text


def _compile(
    config: PipelineConfig, steps: Sequence[Step], given: Sequence[RuntimeParameter]
) -> str:
    from kfp import compiler, dsl

    settings = config.kubeflow
    pipeline = dsl.pipeline(
        _pipeline_function(config, steps, given),
        name=pipeline_name(config),
        pipeline_root=settings.pipeline_root,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(file))
        return file.read_text(encoding="utf-8")


def _pipeline_function(
    config: PipelineConfig, steps: Sequence[Step], given: Sequence[RuntimeParameter]
) -> Any:
    """Returns the function that kfp calls to make the tasks; its signature has the run's parameters."""

    def build(*channels: Any) -> None:
        parameters = dict(zip((item.name for item in given), channels, strict=True))
        _add_tasks(config, steps, given, parameters)

    build.__name__ = "pipeline"
    build.__doc__ = None
    build.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                item.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=item.default,
                annotation=type(item.default),
            )
            for item in given
        ]
    )
    return build


def _add_tasks(
    config: PipelineConfig,
    steps: Sequence[Step],
    given: Sequence[RuntimeParameter],
    parameters: dict[str, Any],
) -> None:
    from kfp import dsl

    from pipelines.kubeflow.compile import containers
    from pipelines.kubeflow.compile.task_settings import apply_settings

    settings = config.kubeflow
    image, root = str(settings.image), str(settings.root)
    run = _run_placeholder(settings.backend)
    end = containers.end_step(image, root)(run=run)
    apply_settings(end, settings, END)
    with dsl.ExitHandler(end, name="run"):
        planned = config.model_copy(update={"kubeflow": settings.without_env()})
        plan = containers.plan_step(planned, steps, given, image, root)(run=run, **parameters)
        apply_settings(plan, settings, PLAN)
        types = {(step.role, key): path for step in steps for key, path in step.outputs.items()}
        tasks: dict[str, Any] = {}
        for step in steps:
            component = containers.component_step(
                step, {key: types[source] for key, source in step.inputs.items()}, image, root
            )
            inputs = {
                key: tasks[role].outputs[output] for key, (role, output) in step.inputs.items()
            }
            if step.role == "pusher":
                inputs[containers.RUN_PARAMETER] = run
            tasks[step.role] = component(
                **inputs, **{containers.PLAN_PARAMETER: plan.outputs[step.role]}
            )
            apply_settings(
                tasks[step.role], settings, step.component, may_cache=step.role != "pusher"
            )
        _run_after_checks(tasks)
        record = containers.record_step(steps, image, root)(
            run=run,
            outcome=tasks["pusher"].outputs[containers.OUTCOME],
            **{role: task.outputs[containers.FINDINGS] for role, task in tasks.items()},
        )
        apply_settings(record, settings, RECORD)


def _run_after_checks(tasks: dict[str, Any]) -> None:
    """Makes Transform wait for the checks of the data: later steps do not run if one fails."""
    tasks["transform"].after(tasks["example_validator"])


def _run_placeholder(backend: str) -> str:
    """Returns KFP's placeholder for the id of a run; on Vertex for its name, which is in the uris, too."""
    from kfp import dsl

    placeholders: dict[str, str] = {
        "kubeflow": dsl.PIPELINE_JOB_ID_PLACEHOLDER,
        "vertex": dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
    }
    return placeholders[backend]
