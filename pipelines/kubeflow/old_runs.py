"""What is left in the root of runs on Kubeflow that are long over. `Plan` tidies it up.

A run is corrected by its step `End`, whose pod may be lost, too. And a run that failed may be tried again
as long as Kubeflow has it: what its steps left for each other stays for a while.
"""

import shutil
import time
from datetime import datetime
from pathlib import Path

from pipelines.kubeflow.run_folder import RunFolder, run_folders
from pipelines.run_record import RunOutcome, RunRecord, RunRecords
from pipelines.run_recorder import after_push

SILENT_SECS = 14 * 24 * 3600
"""A run none of whose steps has ended for so long is over, or its next step opens its record again."""

KEPT_SECS = 2 * SILENT_SECS
"""For so long the steps of a run find what others have left, from the last of these on."""

_SECS_OF_A_DAY = 24 * 3600


def tidy_runs(root: Path, now: float | None = None) -> list[str]:
    """Closes the records of runs that nothing was heard of, and removes what their steps have left.

    Args:
      root: Of the pipeline; its lock is held.
      now: Seconds since 1970. Default: the time.

    Returns:
      The ids of the runs whose records were closed.
    """
    now = time.time() if now is None else now
    records = RunRecords(root)
    closed = []
    for record in records.read_all():
        if record.status != "running" or record.kubeflow_run is None:
            continue
        if _last_sign(root, record) < now - SILENT_SECS:
            outcome = after_push(root, record.run_id, _silent())
            records.write(record.changed(finished=record.finished, **vars(outcome)))
            closed.append(record.run_id)
    for folder in run_folders(root):
        if _newest_change(folder) < now - KEPT_SECS:
            shutil.rmtree(folder, ignore_errors=True)
    return closed


def _silent() -> RunOutcome:
    days = SILENT_SECS // _SECS_OF_A_DAY
    return RunOutcome(
        "failed",
        reason=f"nothing was heard of this run for {days} days, and its step End did not say how it ended",
    )


def _last_sign(root: Path, record: RunRecord) -> float:
    started = datetime.fromisoformat(record.started).timestamp()
    folder = RunFolder(root, str(record.kubeflow_run)).path
    return max(started, _newest_change(folder)) if folder.is_dir() else started


def _newest_change(folder: Path) -> float:
    return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
