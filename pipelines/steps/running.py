"""Runs the planned steps of a pipeline, one after the other; those that have finished are reused."""

import itertools
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from apache_beam.runners.portability.fn_api_runner import worker_handlers
from google.protobuf import json_format
from tfx.components.example_gen.utils import FINGERPRINT_PROPERTY_NAME
from tfx.proto import example_gen_pb2
from tfx.types.artifact import Artifact
from tfx.types.standard_component_specs import INPUT_BASE_KEY, INPUT_CONFIG_KEY

from components.errors import SettingError
from components.example_gen.files import PlannedFiles, describe_change
from components.interruption import interruption
from components.serving_check import model_process
from pipelines.errors import RunFailedError
from pipelines.root.records import RunRecord
from pipelines.steps.causes import describe_cause, is_setting_error
from pipelines.steps.code_fingerprints import content_fingerprint
from pipelines.steps.planning import PipelinePlan
from pipelines.steps.reasons import reason_of_run
from pipelines.steps.step_folders import FinishedStep, StepFolders, new_artifact
from pipelines.steps.step_plan import OutputRef, StepPlan, with_root
from pipelines.terminal.signals import signal_has_come

Artifacts = dict[str, list[Artifact]]

_LOGGER = logging.getLogger(__name__)

_SCRATCH = ".scratch"
_OWN_EXAMPLE_GEN = "components.example_gen."
_SERVING_CHECK = {"classPath": "components.serving_check.executor.Executor"}


class StepObserver(Protocol):
    """Observer that is called before and after each step."""

    def step_started(self, plan: StepPlan) -> None:
        """Called when a step begins."""

    def step_finished(self, step: FinishedStep, reused: bool, elapsed_secs: float, reason: str) -> None:
        """Called when a step has its outputs."""

    def step_failed(self, plan: StepPlan, elapsed_secs: float) -> None:
        """Called when a step has raised an error."""


def run_steps(
    plan: PipelinePlan,
    folders: StepFolders,
    run_id: str,
    observer: StepObserver,
    beam_options: Sequence[str] = (),
    last_run: RunRecord | None = None,
    explain: Callable[[StepPlan, FinishedStep | None], str] = reason_of_run,
) -> list[FinishedStep]:
    """Runs the steps of a pipeline, and returns them."""
    # Beam caches side inputs in this process, too, and measures each of them: a walk through all modules.
    worker_handlers.STATE_CACHE_SIZE_MB = 0
    finished: list[FinishedStep] = []
    try:
        for step, following in itertools.zip_longest(plan.steps, plan.steps[1:]):
            interruption.check()
            start = time.monotonic()
            observer.step_started(step)
            reused, reason = find_reusable(step, folders, run_id, last_run, explain)
            if reused is not None:
                observer.step_finished(reused, True, time.monotonic() - start, reason)
                finished.append(reused)
                continue
            if following is not None:
                _load_model_early(following, plan, folders)
            try:
                made = make_step(step, plan.executors.get(step.component), folders, run_id, beam_options)
            except BaseException as error:  # the user's code may raise SystemExit, too
                observer.step_failed(step, time.monotonic() - start)
                if signal_has_come() or isinstance(error, RunFailedError):
                    raise
                _LOGGER.exception("%s failed", step.component)
                raise RunFailedError(
                    step.component, describe_cause(error), is_bad_input=is_setting_error(error)
                ) from error
            observer.step_finished(made, False, time.monotonic() - start, reason)
            finished.append(made)
    finally:
        model_process.discard()
    return finished


def find_reusable(
    step: StepPlan,
    folders: StepFolders,
    run_id: str,
    last_run: RunRecord | None,
    explain: Callable[[StepPlan, FinishedStep | None], str] = reason_of_run,
) -> tuple[FinishedStep | None, str]:
    """Returns the finished step that a run reuses, None if it makes it; and why."""
    earlier = folders.finished(step.component, step.name)
    if earlier is not None:
        if earlier.run_id == run_id:
            return earlier, "it was finished when the run stopped"
        return earlier, f"same data, code and settings as run {earlier.run_id}"
    if last_run is not None:
        earlier = folders.finished(step.component, last_run.step(step.component))
    if earlier is None:
        earlier = next(reversed(folders.all_finished(step.component)), None)
    return None, explain(step, earlier)


def make_step(
    step: StepPlan,
    executor: dict[str, Any] | None,
    folders: StepFolders,
    run_id: str,
    beam_options: Sequence[str] = (),
) -> FinishedStep:
    """Makes the outputs of a step in its folder, and returns it."""
    start = time.monotonic()
    with folders.locked(step):
        # On Kubeflow, another run may have made it since then.
        made = folders.finished(step.component, step.name)
        if made is None:
            outputs = _make_outputs(step, executor, folders, run_id, beam_options)
            made = folders.finish(step, outputs, run_id, time.monotonic() - start)
    return made


def _load_model_early(following: StepPlan, plan: PipelinePlan, folders: StepFolders) -> None:
    """Starts the process of a ServingCheck that comes next: it loads the model while this step works."""
    if plan.executors.get(following.component, {}).get("spec") != _SERVING_CHECK:
        return
    (model,) = following.inputs["model"]
    if folders.finished(following.component, following.name) is None and folders.exists(model):
        model_process.prepare(folders.artifact(model))


def _make_outputs(
    step: StepPlan,
    executor: dict[str, Any] | None,
    folders: StepFolders,
    run_id: str,
    beam_options: Sequence[str],
) -> dict[str, list[Artifact]]:
    if executor is None:
        return {key: [_imported(step, key)] for key in step.outputs}
    folder = folders.place(step)
    folders.forget(step)
    outputs = {key: [_new_output(step, key, folder)] for key in step.outputs}
    inputs = {key: [folders.artifact(output) for output in sources] for key, sources in step.inputs.items()}
    scratch = folder / _SCRATCH  # of a killed run, it goes with the next attempt
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    run_executor(
        step.component,
        executor,
        with_root(step.parameters, folders.root),
        inputs,
        outputs,
        scratch,
        beam_options,
        run_id,
    )
    shutil.rmtree(scratch)
    _check_sources(step, folders)
    return outputs


def _check_sources(step: StepPlan, folders: StepFolders) -> None:
    """Checks that the files from outside of the root are still those that the plans name."""
    for ref in (ref for sources in step.inputs.values() for ref in sources):
        source = folders.finished(ref.component, ref.step) if isinstance(ref, OutputRef) else None
        if source is not None and not source.plan["executor"]:  # an Importer
            uri = source.plan["parameters"]["artifact_uri"]
            if content_fingerprint(uri, source.component) != source.plan["fingerprints"]["content"]:
                raise SettingError(describe_change(uri))
    values = step.parameters.get("parameters", {})
    base, config, fingerprint = (
        values.get(name, {}).get("fieldValue", {}).get("stringValue", "")
        for name in (INPUT_BASE_KEY, INPUT_CONFIG_KEY, FINGERPRINT_PROPERTY_NAME)
    )
    # Ours checks what it reads. A driver of the user's has fingerprints of another form.
    if base and fingerprint.startswith("{") and not step.class_path.startswith(_OWN_EXAMPLE_GEN):
        splits = json_format.Parse(config, example_gen_pb2.Input()).splits
        patterns = [split.pattern for split in splits]
        PlannedFiles(with_root(base, folders.root), patterns, fingerprint).check_contents()


def _new_output(step: StepPlan, key: str, folder: Path) -> Artifact:
    """Returns an output with an empty folder. Other files that a killed run has left stay."""
    from tfx.types.value_artifact import ValueArtifact

    if (folder / key).is_file():
        (folder / key).unlink()
    shutil.rmtree(folder / key, ignore_errors=True)
    (folder / key).mkdir(parents=True)
    artifact = new_artifact(step.outputs[key], step.properties.get(key))
    artifact.uri = str(folder / key)
    if isinstance(artifact, ValueArtifact):
        artifact.uri = os.path.join(artifact.uri, "value")
    return artifact


def _imported(step: StepPlan, key: str) -> Artifact:
    artifact = new_artifact(step.outputs[key], step.properties.get(key))
    artifact.uri = step.parameters["artifact_uri"]
    artifact.is_external = True
    return artifact


def run_executor(
    component: str,
    executor: Mapping[str, Any],
    parameters: Mapping[str, Any],
    inputs: Artifacts,
    outputs: Artifacts,
    scratch: Path,
    beam_options: Sequence[str] = (),
    run_id: str | None = None,
) -> Artifacts:
    """Runs the executor of a component, and returns its output artifacts, each below its given URI.

    `parameters`: execution properties, as TFX's `NodeParameters`; those that depend on inputs are resolved.
    `outputs`: output artifacts by key, one each; their folders exist.
    """
    from tfx.dsl.compiler import placeholder_utils
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
    # Properties that are values of inputs, such as `count.outputs["n"].future()[0].value`.
    resolution = placeholder_utils.ResolutionContext(exec_info=info)
    info.exec_properties |= inputs_utils.resolve_dynamic_parameters(proto, resolution)
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


def _operator(executor: Mapping[str, Any], beam_options: Sequence[str]) -> Callable[[Any], Any]:
    """Returns TFX's operator that runs this kind of executor."""
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
