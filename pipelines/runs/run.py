"""One run, from the request to its record: plan, execute, record."""

import contextlib
import logging
from pathlib import Path

from components.interruption import interruption
from pipelines.beam.runners import find_runner
from pipelines.config.pipeline_config import WITHOUT_EFFECT_ON_RESULT
from pipelines.data.spans import name_spans
from pipelines.errors import BadInputError
from pipelines.report.files import write_pages
from pipelines.root.history import after_push, new_run, unfinished_run
from pipelines.root.records import RunRecord
from pipelines.runs.execution import execute
from pipelines.runs.mlflow_registry import register_versions
from pipelines.runs.outcome import run_to_outcome
from pipelines.runs.plan.inputs import RunInputs, RunRequest, read_inputs
from pipelines.runs.plan.run_plan import check_same_root_schema, plan_run
from pipelines.runs.recorder import RunRecorder, lineage_events, record_killed_runs, start_record
from pipelines.runs.retention.prune import prune_after_run
from pipelines.runs.unchanged_run import find_unchanged, unchanged_record
from pipelines.terminal.output_capture import OutputCapture
from pipelines.terminal.progress import Progress
from pipelines.terminal.signals import ignore_further_signals

_LOGGER = logging.getLogger(__name__)


def run(request: RunRequest, progress: Progress, capture: OutputCapture) -> RunRecord:
    """Runs a pipeline and returns its record, whose status tells how it ended."""
    runner = find_runner(request.runner)
    with contextlib.suppress(OSError):  # read_inputs reports problems of the root
        request.root.lock.check_free()  # reading the data may take minutes
    inputs = read_inputs(request, progress.display)
    if request.enable_cache and not request.resume:
        unchanged = record_unchanged(inputs, progress, capture, request.scheduled_by)
        if unchanged is not None:
            return unchanged
    plan = plan_run(request, progress.display, inputs)
    progress.max_steps = plan.code.train_steps
    with plan.root.lock.exclusively():
        check_same_root_schema(plan)
        _check_still_unfinished(inputs)
        record_killed_runs(plan.root)  # a run that was killed after its push counts as pushed from now on
        record = start_record(plan)
        interruption.is_held = True  # until there is a record, so that every run's end is recorded
        capture.move_output(Path(record.log))
        recorder = RunRecorder(plan.root, record, progress.display)
        recorder.begin()
        resumed = "resumed " if plan.unfinished else ""
        training = f", with the training of run {record.mended}" if record.mended else ""
        progress.display.line(f"{resumed}run {record.run_id} of {record.name!r} in {plan.root}{training}")
        if record.spans and plan.spans:
            recorder.note(f"data: {name_spans(record.spans)} of {plan.spans.path}")
        outcome = run_to_outcome(lambda: execute(plan, runner, recorder, progress), record.run_id)
        recorder.end(
            after_push(plan.root, record.run_id, outcome),
            tidy=lambda: prune_after_run(plan.root, plan.config.retention, progress.display.line),
        )
    return recorder.record


def _check_still_unfinished(inputs: RunInputs) -> None:
    """Checks that no other process has ended the run to resume while the data were read."""
    planned, now = inputs.unfinished, unfinished_run(inputs.root)
    if planned and (now is None or (now.run_id, now.attempt) != (planned.run_id, planned.attempt)):
        raise BadInputError(
            f"--resume: while the data were read, another process has resumed run {planned.run_id}, or "
            "started a new run. Nothing was changed."
        )


def record_unchanged(
    inputs: RunInputs, progress: Progress, capture: OutputCapture, scheduled_by: str | None = None
) -> RunRecord | None:
    """Records a run for which nothing has changed since an earlier run; returns None if something has."""
    asked = (inputs.root, inputs.config, inputs.data.profile.fingerprint, inputs.spans, inputs.root_schema)
    if find_unchanged(*asked) is None:
        return None
    root = inputs.root
    with root.lock.exclusively():
        record_killed_runs(root)
        unchanged = find_unchanged(*asked)  # another process may have run since
        if unchanged is None:
            return None
        initial = new_run(root, scheduled_by)
        record = unchanged_record(root, initial["run_id"], *unchanged)
        # The earlier run's sections may be outdated: `prune` reads [retention] from the newest record.
        now = inputs.config.model_dump(mode="json", include=set(WITHOUT_EFFECT_ON_RESULT))
        record = record.changed(**initial, attempt=1, config={**record.config, **now})
        capture.move_output(Path(record.log))
        progress.display.line(f"run {record.run_id} of {record.name!r} in {root}")
        for component in record.components:
            progress.component_finished(component.name, True, 0.0, component.reason)
            _LOGGER.info("%s is cached: %s", component.name, component.reason)
        ignore_further_signals()  # only the record is left to write
        root.records.write(record)
        if events := lineage_events(root, record):
            events.run_started()
            for component in record.components:
                events.component_ended(component)
            if lost := events.run_ended(record):
                progress.display.line(f"! {lost}")
                record = record.changed(notes=(*record.notes, lost))
        prune_after_run(root, inputs.config.retention, progress.display.line)
        report = root.report(record.run_id)
        write_pages(root, record, report)
        record = record.changed(report=str(report))
        if problem := register_versions(root, record):
            progress.display.line(f"! {problem}")
        record = record.changed(not_registered=problem)
        root.records.write(record)
    return record
