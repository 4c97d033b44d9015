"""One run, from the request to its record: plan, execute, record."""

import logging
from pathlib import Path

from pipelines.data.spans import name_spans
from pipelines.errors import RunFailedError
from pipelines.interruption import came_from_signal
from pipelines.progress import Progress
from pipelines.run_execution import execute
from pipelines.run_history import mark_killed
from pipelines.run_lock import LOCAL_KUBEFLOW, check_unlocked, locked
from pipelines.run_log import OutputCapture
from pipelines.run_plan import RunRequest, check_same_root_schema, plan_run
from pipelines.run_record import RunOutcome, RunRecord, RunRecords
from pipelines.run_recorder import RunRecorder, after_push, start_record
from pipelines.runners import find_runner

_LOGGER = logging.getLogger(__name__)


def run(request: RunRequest, progress: Progress, capture: OutputCapture) -> RunRecord:
    """Runs a pipeline and returns the record of it, whose status says how it ended.

    Raises:
      BadInputError: The data or the configuration cannot be used; the root was not touched.
    """
    runner = find_runner(request.runner)
    plan = plan_run(request, progress.display)
    progress.max_steps = plan.code.train_steps
    with locked(plan.root):
        check_unlocked(plan.root, LOCAL_KUBEFLOW)
        check_same_root_schema(plan)
        mark_killed(plan.root)
        record = start_record(plan)
        capture.keep_in(Path(record.log))
        recorder = RunRecorder(RunRecords(plan.root), record, progress.display)
        resumed = "resumed " if plan.unfinished else ""
        mended = f", with the training of run {record.mended}" if record.mended else ""
        progress.display.line(
            f"{resumed}run {record.run_id} of {record.name!r} in {plan.root}{mended}"
        )
        if record.spans and plan.spans:
            recorder.note(f"data: {name_spans(record.spans)} of {plan.spans.path}")
        try:
            outcome = execute(plan, runner, recorder, progress)
        except RunFailedError as error:
            outcome = RunOutcome(
                "failed", reason=f"{error.component}: {error}", is_bad_input=error.is_bad_input
            )
        except BaseException as error:  # a signal; or a fault of ours, or of the installation
            if came_from_signal(error):
                outcome = RunOutcome("interrupted", reason="stopped by a signal")
            else:
                _LOGGER.exception("run %s failed", record.run_id)
                outcome = RunOutcome("failed", reason=f"{type(error).__name__}: {error}")
        recorder.end(after_push(plan.root, record.run_id, outcome))
    return recorder.record
