"""Makes the step of a component in its pod, unless it has been made before, and checks its outputs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pipelines.errors import RunFailedError
from pipelines.kubeflow.run_folder import PlannedRun, RunFolder, StepEnd, locked_for_step
from pipelines.root import Root
from pipelines.root.history import held_ids
from pipelines.runs.checks.component_checks import check_from_json
from pipelines.steps.running import make_step
from pipelines.steps.step_folders import StepFolders, is_pusher


def run_component(
    root: Root, folder: RunFolder, planned: PlannedRun, component: str, start: float
) -> StepEnd:
    """Makes the outputs of a step unless they exist, and checks them."""
    step = planned.step(component)
    folders = StepFolders(root.artifacts)
    finished = folders.finished(component, step.plan.name)
    run_id = folder.require_run_id()
    if finished is None:
        is_push = is_pusher(step.plan.class_path)
        around = _push(root, planned, folders, component, run_id) if is_push else nullcontext()
        with around:
            finished = make_step(step.plan, step.executor, folders, run_id, planned.beam_options)
    else:
        print(f"{component}: {step.reason}", file=sys.stderr)
    if step.check is not None:
        outputs = {key: [finished.artifact(key)] for key in finished.outputs}
        findings = check_from_json(step.check)(outputs, root)
        if findings.failure:
            raise findings.failure
    return StepEnd(component, time.monotonic() - start, reused=finished.run_id != run_id)


@contextmanager
def _push(
    root: Root, planned: PlannedRun, folders: StepFolders, component: str, run_id: str
) -> Iterator[None]:
    """Keeps other runs from the versions, and lets the root adopt the schema of a run that pushes."""
    with locked_for_step(root, component, run_id):
        _check_same_version(root, component, run_id, planned.serving_version)
        if planned.schema_keeping is not None:
            schema = folders.finished("SchemaGen", planned.step("SchemaGen").plan.name)
            if schema is not None:
                planned.schema_keeping.prepare(schema.artifact("schema").uri, root, run_id)
        yield
        root.schema.adopt(*held_ids(root), run_id)


def _check_same_version(root: Root, component: str, run_id: str, planned: str | None) -> None:
    serving, pushed = root.versions.serving(), root.versions.version_of_run(run_id)
    if pushed in root.versions.withdrawn():
        raise RunFailedError(
            component,
            f"version {pushed}, which an earlier attempt of this step pushed, was withdrawn by a rollback, "
            "which pushing the model again would undo. To make it live, start a new run",
        )
    if pushed is None and serving != planned:
        raise RunFailedError(
            component,
            f"{f'version {serving}' if serving else 'no version'} is live now, and "
            f"{f'version {planned}' if planned else 'none'} was when the run began: another run, a rollback, "
            "or a killed attempt of this step changed it. Run again: unchanged steps are reused",
        )
