"""One run, from the request to its record: plan, execute, record."""

import logging
from pathlib import Path

from pipelines.errors import RunFailedError
from pipelines.progress import Progress
from pipelines.run_execution import execute
from pipelines.run_history import mark_killed
from pipelines.run_lock import locked
from pipelines.run_log import OutputCapture
from pipelines.run_plan import RunRequest, plan_run
from pipelines.run_record import RunOutcome, RunRecord, RunRecords
from pipelines.run_recorder import RunRecorder, start_record
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
        mark_killed(plan.root)
        record = start_record(plan)
        capture.keep_in(Path(record.log))
        recorder = RunRecorder(RunRecords(plan.root), record, progress.display)
        resumed = "resumed " if plan.unfinished else ""
        progress.display.line(f"{resumed}run {record.run_id} of {record.name!r} in {plan.root}")
        try:
            outcome = execute(plan, runner, recorder, progress)
        except RunFailedError as error:
            outcome = RunOutcome("failed", reason=f"{error.component}: {error}")
        except KeyboardInterrupt:
            outcome = RunOutcome("interrupted", reason="stopped by a signal")
        except Exception as error:  # a fault of ours, or of the installation
            _LOGGER.exception("run %s failed", record.run_id)
            outcome = RunOutcome("failed", reason=f"{type(error).__name__}: {error}")
        recorder.end(outcome)
    return recorder.record
