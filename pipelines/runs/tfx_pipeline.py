"""A run of a TFX pipeline of the user's own, from the request to its record."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from components.interruption import interruption
from pipelines.beam.runners import Runner, find_runner
from pipelines.checks.component_checks import (
    AnomalyCheck,
    ComponentCheck,
    ModelCheck,
    SearchCheck,
    ServedModelCheck,
    VerdictCheck,
)
from pipelines.config.load import explain
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.config.toml import read_toml
from pipelines.errors import BadInputError, RunFailedError
from pipelines.plan.inputs import RunRequest, check_root, nothing_to_resume
from pipelines.retention.prune import prune_after_run
from pipelines.root import Root
from pipelines.root.history import unfinished_run
from pipelines.root.leftovers import remove_leftovers
from pipelines.root.records import ComponentRecord, RunOutcome, RunRecord, new_run_id, utc_now
from pipelines.runs.environment import describe_environment
from pipelines.runs.recorder import RunRecorder, record_killed_runs
from pipelines.terminal.output_capture import OutputCapture
from pipelines.terminal.progress import Progress
from pipelines.terminal.signals import signal_has_come, stop_raising

if TYPE_CHECKING:
    from pipelines.steps.planning import PipelinePlan
    from pipelines.steps.step_folders import FinishedStep
    from pipelines.steps.step_plan import StepPlan

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class TfxPipelineRequest:
    """A run that the command line asks for."""

    root: Root
    config: TfxPipelineConfig
    runner: str = "local"
    enable_cache: bool = True
    resume: bool = False
    scheduled_by: str | None = None


def is_of_tfx_pipeline(request: RunRequest) -> bool:
    """Returns True if a request without `--pipeline` is for a TFX pipeline all the same."""
    if request.config_file is not None:
        return "pipeline" in read_toml(request.config_file)
    return (
        request.resume
        and not request.gives_configuration
        and recorded_config(request.root) is not None
    )


def recorded_config(root: Root) -> TfxPipelineConfig | None:
    """Returns the configuration of the newest run; None if it has none of a TFX pipeline."""
    newest = root.records.read_all()[-1:]
    if not newest or "pipeline" not in newest[0].config:
        return None
    try:
        return TfxPipelineConfig.model_validate(newest[0].config)
    except ValidationError as error:
        raise BadInputError(
            f"The configuration in the record of run {newest[0].run_id} cannot be used: "
            f"{explain(error, None, TfxPipelineConfig)} Restore the record, or give --pipeline again."
        ) from error


def run_tfx_pipeline(
    request: TfxPipelineRequest, progress: Progress, capture: OutputCapture
) -> RunRecord:
    """Runs a pipeline and returns its record, whose status tells how it ended.

    Raises:
      BadInputError: The definition or the configuration cannot be used; no record was written.
    """
    runner = find_runner(request.runner)
    runner.check(request.config.beam)
    check_root(request.root)
    root = request.root
    source = request.config.pipeline
    progress.display.activity(f"loading {source.file}")
    from pipelines.steps.definition import load_pipeline

    pipeline = load_pipeline(Path(source.file).resolve(), source.function, source.arguments)
    from pipelines.steps.planning import plan_steps

    with root.lock.exclusively():
        record_killed_runs(root)
        unfinished = unfinished_run(root) if request.resume else None
        if request.resume and unfinished is None:
            raise BadInputError(nothing_to_resume(root))
        record = _new_record(request, root, pipeline.pipeline_name, unfinished)
        parameters = {name: str(value) for name, value in source.parameters.items()}
        if pipeline.pipeline_info.pipeline_root != str(root.artifacts):
            progress.display.line(
                f"! artifacts are kept in {root.artifacts}, not in the definition's pipeline_root, and no "
                "metadata store is used"
            )
        plan = plan_steps(pipeline, root, record.run_id, parameters, request.enable_cache)
        interruption.is_held = True  # until there is a record, so that every run's end is recorded
        capture.keep_in(Path(record.log))
        recorder = RunRecorder(root, record, progress.display)
        for lost in remove_leftovers(root, record.run_id):
            recorder.note(lost)
        recorder.add_graph(plan.graph)
        recorder.begin()
        resumed = "resumed " if unfinished else ""
        progress.display.line(f"{resumed}run {record.run_id} of {record.name!r} in {root}")
        recorder.end(
            _outcome(plan, request, runner, recorder, progress),
            tidy=lambda: prune_after_run(root, request.config.retention, progress.display.line),
        )
    return recorder.record


def _new_record(
    request: TfxPipelineRequest, root: Root, name: str, unfinished: RunRecord | None
) -> RunRecord:
    records = root.records.read_all()
    name = request.config.name or name
    others = {record.name for record in records if record.name != name or "data" in record.config}
    if others:
        raise BadInputError(
            f"--root {root} has runs of the pipeline {others.pop()!r}: use another --root for {name!r}"
        )
    run_id = unfinished.run_id if unfinished else new_run_id(records)
    return RunRecord(
        run_id=run_id,
        name=name,
        status="running",
        started=unfinished.started if unfinished else utc_now(),
        config={**request.config.model_dump(mode="json"), "name": name},
        data_fingerprint="",
        log=str(root.log(run_id)),
        baseline_version=root.versions.served_before(run_id),
        environment=describe_environment(),
        scheduled_by=request.scheduled_by or (unfinished.scheduled_by if unfinished else None),
        attempt=unfinished.attempt + 1 if unfinished else 1,
    )


def _outcome(
    plan: "PipelinePlan",
    request: TfxPipelineRequest,
    runner: Runner,
    recorder: RunRecorder,
    progress: Progress,
) -> RunOutcome:
    """Runs the steps, and returns the outcome; from then on a signal raises no exception."""
    from pipelines.steps.running import run_steps
    from pipelines.steps.step_folders import StepFolders

    observer = _Observer(request.root, recorder, progress)
    try:
        try:
            interruption.is_held = False
            interruption.check()
            with runner.beam_options(request.config.beam, request.root.beam) as beam_options:
                steps = run_steps(
                    plan,
                    StepFolders(request.root.artifacts),
                    recorder.record.run_id,
                    observer,
                    beam_options,
                )
            return _outcome_of_pushes(steps, observer.ran, request.root, recorder)
        finally:
            stop_raising()
    except BaseException as error:  # an error of the user's, of ours, or of the installation
        if signal_has_come():
            return RunOutcome("interrupted", reason="stopped by a signal")
        if isinstance(error, RunFailedError):
            reason = f"{error.component}: {error}"
            return RunOutcome("failed", reason=reason, is_bad_input=error.is_bad_input)
        _LOGGER.exception("run %s failed", recorder.record.run_id)
        return RunOutcome("failed", reason=f"{type(error).__name__}: {error}")


def _outcome_of_pushes(
    steps: Sequence["FinishedStep"], ran: set[str], root: Root, recorder: RunRecorder
) -> RunOutcome:
    """Returns the outcome of a run whose steps have all finished: what its Pushers did, if it has any.

    Args:
      steps: All steps.
      ran: Ids of the components that ran in this run.
      root: Root of the run. A version that was pushed elsewhere is only in a note.
      recorder: Recorder of the run.
    """
    from pipelines.steps.push_destination import pushes_of

    pushes = pushes_of(steps)
    done = [push for push in pushes if push.destination]
    if pushes and not done:
        return RunOutcome("not_blessed", reason=pushes[-1].reason or "the model is not blessed")
    new = [push for push in done if push.component in ran]
    if new:
        for push in new:
            recorder.note(f"{push.component}: pushed to {push.destination}")
        own = [push.version for push in new if Path(push.destination).parent == root.serving]
        return RunOutcome("pushed", version=own[-1] if own else None)
    refusing = [step.component for step in steps if step.has_blessed is False]
    if pushes and refusing:  # the model that was pushed earlier would not be pushed today
        return RunOutcome("not_blessed", reason=f"{refusing[0]} has not blessed the model")
    if not ran:
        return RunOutcome("unchanged", reason="no step has changed")
    if not pushes:
        return RunOutcome("finished")
    return RunOutcome("unchanged", reason="the model that was pushed has not changed")


def _checks(baseline_version: str | None) -> dict[str, ComponentCheck]:
    """Returns what reads the outputs of our components for the record and the report, by executor."""
    return {
        "components.example_validator.executor.Executor": AnomalyCheck(
            "ExampleValidator", "warn", has_own_schema=True
        ),
        "components.trainer.executor.Executor": ModelCheck(compares_models=False),
        "components.trainer.executor.GenericExecutor": ModelCheck(compares_models=False),
        "components.tuner.executor.Executor": SearchCheck(),
        "components.evaluator.executor.Executor": VerdictCheck((), (), baseline_version),
        "components.serving_check.executor.Executor": ServedModelCheck(),
    }


class _Observer:
    """Shows and records the steps."""

    def __init__(self, root: Root, recorder: RunRecorder, progress: Progress):
        self._root = root
        self._recorder = recorder
        self._progress = progress
        self.ran: set[str] = set()

    def step_started(self, plan: "StepPlan") -> None:
        trains = plan.component.partition(".")[0] == "Trainer"
        self._progress.component_started(plan.component, trains=trains)
        self._recorder.component_started(plan.component)

    def step_finished(
        self, step: "FinishedStep", reused: bool, elapsed_secs: float, reason: str
    ) -> None:
        if not reused:
            self.ran.add(step.component)
        _LOGGER.info("%s %s: %s", step.component, "is cached" if reused else "ran", reason)
        self._progress.component_finished(step.component, reused, elapsed_secs, reason)
        status: Literal["cached", "finished"] = "cached" if reused else "finished"
        self._recorder.add_component(
            ComponentRecord(step.component, status, elapsed_secs, reason, step.name)
        )
        executor = step.plan["executor"].get("spec", {})
        class_path = executor.get("classPath") or executor.get("pythonExecutorSpec", {}).get(
            "classPath"
        )
        if check := _checks(self._recorder.record.baseline_version).get(class_path):
            outputs = {key: [step.artifact(key)] for key in step.outputs}
            check(outputs, self._recorder, self._root)

    def step_failed(self, plan: "StepPlan", elapsed_secs: float) -> None:
        self._progress.component_failed(plan.component, elapsed_secs)
        self._recorder.add_component(ComponentRecord(plan.component, "failed", elapsed_secs))
