"""What is left in the root of runs on Kubeflow that are long over. `Plan` tidies it up.

A run is corrected by its step `End`, whose pod may be lost, too. And a run that failed may be tried again
as long as Kubeflow has it: what its steps left for each other stays for a while.
"""

import shutil
import time
from datetime import datetime
from pathlib import Path

from pipelines.kubeflow.run_folder import RunFolder, run_folders
from pipelines.root.records import RunOutcome, RunRecord, RunRecords
from pipelines.run.recorder import after_push

SILENT_SECS = 14 * 24 * 3600
"""A run none of whose steps has ended for so long is over, or its next step opens its record again."""

KEPT_SECS = 2 * SILENT_SECS
"""For so long the steps of a run find what others have left, from the last of these on."""

_RUN = "kubeflow_run"

_SECS_OF_A_DAY = 24 * 3600


def tidy_runs(root: Path, now: float | None = None) -> list[str]:
    """Closes the records of runs that nothing was heard of, and removes what their steps have left.

    Args:
      root: Of the pipeline; its lock is held. Plans and copies of data that no run of late has needed go,
        too; findings stay: Kubeflow's cache may ask for them at any time.
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
    for pattern in (
        "plans/*.json",
        "data/[!.]*",
    ):  # each Plan renews the times of those that it needs
        for path in root.glob(pattern):
            if path.stat().st_mtime < now - KEPT_SECS:
                _remove(path)
    return closed


def mark_training(folder: Path, kubeflow_run: str) -> None:
    """Writes into the folder of a training whose it is."""
    (folder / _RUN).write_text(kubeflow_run, encoding="utf-8")


def remove_training(root: Path, kubeflow_run: str) -> None:
    """Removes the files of a run's training that other pods have shared; its Trainer is over.

    Args:
      root: Of the pipeline.
      kubeflow_run: Id of the run on Kubeflow.
    """
    for file in sorted((root / "training").glob(f"*/{_RUN}")):
        if file.read_text(encoding="utf-8") == kubeflow_run:
            shutil.rmtree(file.parent, ignore_errors=True)


def _silent() -> RunOutcome:
    days = SILENT_SECS // _SECS_OF_A_DAY
    return RunOutcome(
        "failed",
        reason=f"nothing was heard of this run for {days} days, and its step End did not say how it ended",
    )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _last_sign(root: Path, record: RunRecord) -> float:
    started = datetime.fromisoformat(record.started).timestamp()
    folder = RunFolder(root, str(record.kubeflow_run)).path
    return max(started, _newest_change(folder)) if folder.is_dir() else started


def _newest_change(folder: Path) -> float:
    return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
