"""Step of the Pusher: keeps the model for the next run, pushes it, and returns the outcome of the run."""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from components.pusher.held import is_held, may_be_pushed
from pipelines.checks.schema_keeping import SchemaKeeping
from pipelines.errors import RunFailedError
from pipelines.kubeflow.component_plan import ComponentPlan
from pipelines.kubeflow.run_folder import locked_for_step
from pipelines.kubeflow.steps.artifacts import output_metadata
from pipelines.kubeflow.steps.component_step import execute_component, kept_of, read_inputs
from pipelines.kubeflow.steps.served_baseline import forget_unserved, keep, keep_statistics
from pipelines.kubeflow.steps.step_call import Artifacts, StepCall
from pipelines.root import Root
from pipelines.root.held_models import held_ids
from pipelines.runs.outcome import push_outcome


def run_pusher(call: StepCall, plan: ComponentPlan, run_id: str) -> tuple[dict[str, Any], str]:
    """Pushes the model if it is blessed.

    A retry after the push finds the version that was pushed.

    Args:
      call: Arguments of the container; `schema`, `statistics` and `evaluation` are inputs, too.
      plan: Plan of the component.
      run_id: Id of the run.

    Returns:
      Metadata of the outputs for Kubeflow to store; and the outcome, a `RunOutcome` as JSON.

    Raises:
      RunFailedError: The version that serves is not the one that the model was compared with.
    """
    push = plan.push or {}
    with (
        tempfile.TemporaryDirectory() as scratch,
        locked_for_step(call.root, plan.component, run_id),
    ):
        _check_same_baseline(call.root, plan.component, run_id, push.get("baseline_version"))
        inputs = read_inputs(call, plan, Path(scratch))
        if _may_be_pushed(inputs):
            _keep_for_next_run(call, inputs, run_id)
            if push.get("schema_keeping"):
                SchemaKeeping.from_json(push["schema_keeping"]).prepare(
                    call.inputs["schema"], call.root, run_id
                )
        outputs = execute_component(call, plan, inputs, Path(scratch), run_id)
        outcome = push_outcome(outputs["pushed_model"][0], call.inputs["evaluation"], call.root)
        held = [run_id] if outcome.status == "held" else []
        call.root.schema.adopt(*held_ids(call.root), *held)
        if outcome.status not in ("pushed", "held"):
            _forget(call.root, run_id)
        forget_unserved(call.root)
    return output_metadata(call.executor_input, outputs), json.dumps(asdict(outcome))


def _check_same_baseline(root: Root, component: str, run_id: str, planned: str | None) -> None:
    serving = root.versions.serving()
    if root.versions.pushed_by(run_id) is None and serving != planned:
        raise RunFailedError(
            component,
            f"{f'version {serving}' if serving else 'no version'} serves now, and the model was "
            f"compared with {f'version {planned}' if planned else 'none'}: another run or a rollback "
            "has changed it. Run again: unchanged steps are taken from the cache",
        )


def _may_be_pushed(inputs: Artifacts) -> bool:
    """Returns True if the model is pushed now, or held and pushed once it is approved."""
    return may_be_pushed(inputs.get("model_blessing", [])) and all(
        artifact.get_int_custom_property("blessed") == 1
        for artifact in inputs.get("infra_blessing", [])
    )


def _keep_for_next_run(call: StepCall, inputs: Artifacts, run_id: str) -> None:
    """Copies the model and its statistics into the root; the copy of the model is pushed.

    A model that is held may be pushed when Kubeflow's artifacts are out of reach: its warm-up requests, from
    the ServingCheck, are copied, too.
    """
    (model,) = inputs["model"]
    folder = keep(call.root, run_id, "model", Path(model.uri), kept_of(model))
    model.uri = str(folder)
    keep_statistics(call, run_id)
    is_waiting = any(map(is_held, inputs.get("model_blessing", [])))
    for blessing in inputs.get("infra_blessing", []) if is_waiting else ():
        copy = keep(call.root, run_id, "serving_check", Path(blessing.uri), kept_of(blessing))
        blessing.uri = str(copy)


def _forget(root: Root, run_id: str) -> None:
    import shutil

    shutil.rmtree(root.kept / run_id, ignore_errors=True)
