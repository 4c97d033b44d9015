"""The record of a run: opened by each step, and closed by a step that fails, by `Record` or by `End`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from pipelines.config.retention import RetentionConfig
from pipelines.kubeflow.compile.dag import END, RECORD
from pipelines.kubeflow.run_folder import PlannedRun, PlannedStep, RunFolder, StepEnd, locked_for_step
from pipelines.root import Root
from pipelines.root.history import after_push
from pipelines.root.records import UNFINISHED, ComponentRecord, RunOutcome, RunRecord
from pipelines.runs.checks.component_checks import check_from_json
from pipelines.runs.outcome import push_outcome
from pipelines.runs.recorder import RunRecorder
from pipelines.runs.retention.prune import prune_after_run
from pipelines.runs.tfx_pipeline import outcome_of_pushes
from pipelines.steps.step_folders import FinishedStep, StepFolders
from pipelines.terminal.progress import PlainDisplay


def record_run(root: Root, kubeflow_run: str) -> RunRecord:
    """Writes the steps and what their checks find into the record of the run, and the report.

    It starts from the record as `Plan` wrote it, so that a retry of the step writes the same record.
    """
    folder = RunFolder(root, kubeflow_run)
    with locked_for_step(root, RECORD, kubeflow_run):
        _reopen(root, folder.require_run_id())
        recorder = _recorder(root, folder)
        if recorder is None:
            raise LookupError(
                f"There is no record of run {folder.require_run_id()} in {root.runs}: it was removed "
                "during the run."
            )
        planned = folder.read_plan()
        outcome = _outcome(recorder, planned, _record_steps(recorder, folder, planned.steps))
        recorder.end(outcome, tidy=_retention(root, recorder.record))
    return recorder.record


def _outcome(recorder: RunRecorder, planned: PlannedRun, finished: Mapping[str, FinishedStep]) -> RunOutcome:
    if planned.definition is None:
        return push_outcome(
            finished["Pusher"].artifact("pushed_model"),
            finished["Evaluator"].artifact("evaluation").uri,
            recorder.root,
        )
    record = recorder.record
    ran = {component.name for component in record.components if component.status == "finished"}
    return outcome_of_pushes(list(finished.values()), ran, recorder.root, recorder)


def reopen_run(root: Root, folder: RunFolder, component: str) -> None:
    """Marks a run as running if it had failed and is tried again on Kubeflow.

    While another step's failure counts, the run stays failed: that step runs in parallel, or will be tried
    again later.
    """
    run_id = folder.require_run_id()
    record = root.records.read(run_id)
    if record is not None and record.status != "running" and not folder.failures():
        with locked_for_step(root, component, folder.kubeflow_run):
            _reopen(root, run_id)


def _reopen(root: Root, run_id: str) -> None:
    record = root.records.read(run_id)
    if record is not None and record.status != "running":
        is_retry = record.status in UNFINISHED  # else only `Record` is tried again, not the run
        recorder = RunRecorder(
            root,
            record.changed(
                status="running",
                finished=None,
                reason=None,
                is_bad_input=False,
                attempt=record.attempt + is_retry,
            ),
            PlainDisplay(sys.stderr),
        )
        if is_retry:
            recorder.begin()


def close_failed_run(root: Root, kubeflow_run: str, component: str, wait_secs: float) -> None:
    """Records that a step has failed: `End` may not run, as after a *Retry* on Kubeflow."""
    folder = RunFolder(root, kubeflow_run)
    with locked_for_step(root, component, kubeflow_run, wait_secs):
        recorder = _recorder(root, folder)
        if recorder is not None and recorder.record.status in UNFINISHED:
            _close(root, folder, recorder)


def end_run(root: Root, kubeflow_run: str, outcome: RunOutcome | None = None) -> RunRecord | None:
    """Records why a run ended before `Record`; returns the record, or None.

    After a failure, the files that steps left for each other stay: Kubeflow can try the steps again.

    `outcome`: outcome of the run. Default: derived from the ends of its steps.
    """
    folder = RunFolder(root, kubeflow_run)
    with locked_for_step(root, END, kubeflow_run):
        recorder = _recorder(root, folder)
        has_failed = bool(folder.failures())
        if recorder is not None and (
            recorder.record.status == "running"
            or (has_failed and recorder.record.status in UNFINISHED)  # with steps that ended since
        ):
            _close(root, folder, recorder, outcome)
        elif recorder is None or not (has_failed or recorder.record.status in UNFINISHED):
            folder.remove()
    return recorder.record if recorder else None


def close_known_run(root: Root, kubeflow_run: str, state: str) -> None:
    """Closes the record of a run that has ended on Kubeflow, if it is still `running`."""
    run_id = RunFolder(root, kubeflow_run).read_run_id()
    record = root.records.read(run_id) if run_id else None
    if record is None or record.status != "running":
        return
    if state == "CANCELED":
        end_run(root, kubeflow_run, RunOutcome("interrupted", "the run was canceled on Kubeflow"))
    elif state == "FAILED":
        end_run(root, kubeflow_run)


def _close(root: Root, folder: RunFolder, recorder: RunRecorder, outcome: RunOutcome | None = None) -> None:
    failures = folder.failures()
    with suppress(LookupError):  # a run whose Plan has failed
        ended = {end.component for end in folder.steps()}
        steps = list(folder.read_plan().steps)
        while steps and steps[-1].plan.component not in ended:
            steps.pop()  # not reached
        _record_steps(recorder, folder, steps)
    if outcome is None:
        outcome = _failed_outcome(failures, folder.kubeflow_run)
    recorder.end(after_push(root, recorder.record.run_id, outcome), tidy=_retention(root, recorder.record))


def _retention(root: Root, record: RunRecord) -> Callable[[], None]:
    """Returns a function that applies a run's `[retention]` to the root, called while its lock is held."""
    rules = RetentionConfig.model_validate(record.section("retention"))
    return lambda: prune_after_run(root, rules, PlainDisplay(sys.stderr).line)


def _failed_outcome(failures: Sequence[StepEnd], kubeflow_run: str) -> RunOutcome:
    if not failures:
        return RunOutcome(
            "failed",
            reason="a step ended without a reason: it was killed, ran out of memory or time, or "
            f"could not start. Kubeflow's run {kubeflow_run} shows the cause",
        )
    first = failures[0]
    return RunOutcome(
        "interrupted" if first.is_interrupted else "failed",
        reason=f"{first.component}: {first.reason}",
        is_bad_input=first.is_bad_input,
    )


def _recorder(root: Root, folder: RunFolder) -> RunRecorder | None:
    """Returns a recorder that continues the record that `Plan` wrote."""
    run_id = folder.read_run_id()
    record = root.records.read(run_id) if run_id else None
    if record is None:
        return None
    if record.status in UNFINISHED:
        record = record.changed(components=(), notes=record.notes[: folder.read_num_notes()])
    return RunRecorder(root, record, PlainDisplay(sys.stderr))


def _record_steps(
    recorder: RunRecorder, folder: RunFolder, steps: Sequence[PlannedStep]
) -> dict[str, FinishedStep]:
    """Records steps and what their checks find, and returns those that have outputs, by component."""
    folders = StepFolders(recorder.root.artifacts)
    finished: dict[str, FinishedStep] = {}
    for step in steps:
        component = step.plan.component
        made = folders.finished(component, step.plan.name)
        end = folder.read_step(component)
        if end is None:
            if made is None:  # it was to run in parallel with a step that failed
                continue
            end = StepEnd(component, 0.0, reused=step.made_by != recorder.record.run_id)
        status: Literal["cached", "failed", "finished"] = "cached" if end.reused else "finished"
        reason, own = step.reason, recorder.record.run_id
        if made is not None and step.made_by == own != made.run_id:
            reason = f"run {made.run_id} has run it since"
        recorder.add_component(
            ComponentRecord(
                component, "failed" if made is None else status, end.elapsed_secs, reason, step.plan.name
            )
        )
        if made is not None:
            finished[component] = made
            if step.check is not None:
                outputs = {key: [made.artifact(key)] for key in made.outputs}
                recorder.add_findings(check_from_json(step.check)(outputs, recorder.root))
    return finished
