"""Cleaning of the root: `Plan` removes the remains of Kubeflow runs that are long over.

A run's step `End` closes its record, but the pod of that step may be lost, too. And a failed run may be
tried again as long as Kubeflow has it: the files that its steps left for each other stay for a while.
"""

import shutil
import time
from datetime import datetime
from pathlib import Path

from pipelines.kubeflow.run_folder import RunFolder, run_folders
from pipelines.root import Root
from pipelines.root.records import RunOutcome, RunRecord
from pipelines.run.recorder import after_push

SILENT_SECS = 14 * 24 * 3600
"""Silence after which a run counts as over; if a step of it still comes, it opens the record again."""

KEPT_SECS = 2 * SILENT_SECS
"""Time that the files of a run's steps are kept, counted from the newest of them."""

_RUN = "kubeflow_run"

_SECS_OF_A_DAY = 24 * 3600


def tidy_runs(root: Root, now: float | None = None) -> list[str]:
    """Closes the records of runs without a sign of life, and removes the files that their steps left.

    Args:
      root: Root of the runs; its lock is held. Plans and copies of data that no recent run
        needed are removed, too; findings stay, since Kubeflow's cache may ask for them at any time.
      now: Current time in seconds since 1970. Default: the clock's.

    Returns:
      Ids of the runs whose records were closed.
    """
    now = time.time() if now is None else now
    records = root.records
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
    for path in (*root.plans.glob("*.json"), *root.data.glob("[!.]*")):
        if path.stat().st_mtime < now - KEPT_SECS:  # each Plan touches those that it needs
            _remove(path)
    return closed


def mark_training(folder: Path, kubeflow_run: str) -> None:
    """Writes the id of the run into the folder of its training."""
    (folder / _RUN).write_text(kubeflow_run, encoding="utf-8")


def remove_training(root: Root, kubeflow_run: str) -> None:
    """Removes the files that the pods of a run's training shared; its Trainer is over.

    Args:
      root: Root of the runs.
      kubeflow_run: Id of the run on Kubeflow.
    """
    for file in sorted(root.training.glob(f"*/{_RUN}")):
        if file.read_text(encoding="utf-8") == kubeflow_run:
            shutil.rmtree(file.parent, ignore_errors=True)


def _silent() -> RunOutcome:
    days = SILENT_SECS // _SECS_OF_A_DAY
    return RunOutcome(
        "failed",
        reason=f"no sign of life from this run for {days} days, and its step End did not record its outcome",
    )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _last_sign(root: Root, record: RunRecord) -> float:
    started = datetime.fromisoformat(record.started).timestamp()
    folder = RunFolder(root, str(record.kubeflow_run)).path
    return max(started, _newest_change(folder)) if folder.is_dir() else started


def _newest_change(folder: Path) -> float:
    return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
