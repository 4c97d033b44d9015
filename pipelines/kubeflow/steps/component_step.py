"""Runs one component on Kubeflow's artifacts, without a metadata service."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.file_systems import copy_tree
from pipelines import atomic_files
from pipelines.errors import RunFailedError
from pipelines.kubeflow.component_plan import ComponentPlan
from pipelines.kubeflow.run_folder import kubeflow_run_of
from pipelines.kubeflow.steps.artifacts import (
    input_metadata,
    metadata_of,
    new_artifact,
    output_metadata,
)
from pipelines.kubeflow.steps.old_runs import mark_training
from pipelines.kubeflow.steps.served_baseline import kept_metadata
from pipelines.kubeflow.steps.step_call import Artifacts, StepCall
from pipelines.kubeflow.training.training_job import JOB_KEY, shared_folder
from pipelines.steps.execution import run_executor

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

    from pipelines.checks.component_checks import Findings


class CheckFailedError(RunFailedError):
    """A component has written its outputs, but its check found that the run must not go on."""


def run_component(call: StepCall, plan: ComponentPlan, findings: "Findings") -> dict[str, Any]:
    """Runs a component and its check, and returns the metadata of its outputs for Kubeflow to store.

    Args:
      call: Arguments of the container.
      plan: Plan of the component.
      findings: Receiver of the check's findings.

    Raises:
      CheckFailedError: The outputs are written, but the run must not go on.
    """
    with tempfile.TemporaryDirectory() as scratch:
        inputs = read_inputs(call, plan, Path(scratch))
        if JOB_KEY in plan.parameters.get("parameters", {}):
            outputs = _execute_shared(call, plan, inputs, Path(scratch))
        else:
            outputs = execute_component(call, plan, inputs, Path(scratch))
    if plan.check is not None:
        from pipelines.checks.component_checks import check_from_json

        try:
            check_from_json(plan.check)(outputs, findings, call.root)
        except RunFailedError as error:
            raise CheckFailedError(error.component, str(error), error.is_bad_input) from error
    return output_metadata(call.executor_input, outputs)


def _execute_shared(
    call: StepCall, plan: ComponentPlan, inputs: Artifacts, scratch: Path
) -> Artifacts:
    """Runs a component together with other pods: its files are in the root meanwhile.

    The folder is named after the run, so that a retry of the step carries on from it.
    """
    with shared_folder(call.root, plan, call.executor_input) as folder:
        mark_training(folder, _run_of(call))
        for key, (artifact,) in inputs.items():
            place = folder / "inputs" / key
            atomic_files.copy_folder(Path(artifact.uri), place)
            artifact.uri = str(place)
        outputs = {key: str(folder / "outputs" / key) for key in call.outputs}
        made = execute_component(replace(call, outputs=outputs), plan, inputs, scratch)
        for key, (artifact,) in made.items():
            copy_tree(artifact.uri, call.outputs[key])
            artifact.uri = call.outputs[key]
    return made


def _run_of(call: StepCall) -> str:
    outputs = call.executor_input["outputs"]["artifacts"].values()
    return kubeflow_run_of([output["artifacts"][0]["uri"] for output in outputs])


def read_inputs(call: StepCall, plan: ComponentPlan, scratch: Path) -> Artifacts:
    """Returns the input artifacts of a component.

    Args:
      call: Arguments of the container.
      plan: Plan of the component.
      scratch: Folder that outlives the component.
    """
    inputs = {
        key: [new_artifact(kind, call.inputs[key], input_metadata(call.executor_input, key))]
        for key, kind in plan.inputs.items()
        if key in call.inputs
    }
    for key, place in plan.baselines.items():
        folder = call.root.path / place
        inputs[key] = [new_artifact(plan.inputs[key], str(folder), kept_metadata(folder))]
    if plan.schema is not None:
        folder = scratch / "root_schema"
        folder.mkdir()
        (folder / "schema.pbtxt").write_text(plan.schema, encoding="utf-8")
        inputs["schema"] = [new_artifact(plan.inputs["schema"], str(folder))]
    return inputs


def execute_component(
    call: StepCall,
    plan: ComponentPlan,
    inputs: Artifacts,
    scratch: Path,
    run_id: str | None = None,
) -> Artifacts:
    """Runs the executor of a component, and returns its outputs.

    Args:
      call: Arguments of the container.
      plan: Plan of the component.
      inputs: Input artifacts.
      scratch: Folder that outlives the component.
      run_id: Id of the run, for a component that depends on it.
    """
    outputs = {key: [new_artifact(kind, call.outputs[key])] for key, kind in plan.outputs.items()}
    for path in call.outputs.values():
        Path(path).mkdir(parents=True, exist_ok=True)
    return run_executor(
        plan.component,
        plan.executor,
        plan.parameters,
        inputs,
        outputs,
        scratch,
        call.beam_options,
        run_id,
    )


def kept_of(artifact: "Artifact") -> dict[str, str]:
    """Returns the metadata of an artifact that are stored beside its folder."""
    return metadata_of(artifact)
