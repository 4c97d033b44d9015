"""Cleaning of the root: `Plan` removes the remains of Kubeflow runs that are long over.

The record of a run whose step was killed is closed here, if nothing else has closed it. And a failed run
may be tried again as long as Kubeflow has it: the files that its steps left for each other stay for a while.
"""

import shutil
import time
from pathlib import Path

from pipelines.kubeflow.run_folder import run_folders
from pipelines.root import Root
from pipelines.root.history import after_push
from pipelines.root.signs_of_life import SILENT_SECS, lost_outcome, newest_change

KEPT_SECS = 2 * SILENT_SECS
"""Time that the files of a run's steps are kept, counted from the newest of them."""

_FORMER = ("plans", "findings", "training")
"""Folders in which steps kept their plans and findings before these were kept with the run."""


def tidy_runs(root: Root, now: float | None = None) -> list[str]:
    """Closes the records of runs without a sign of life, and removes the files that their steps left.

    `root`: root of the runs; its lock is held. Copies of data that no recent run needed are removed, too.
    `now`: current time in seconds since 1970. Default: the clock's.
    """
    now = time.time() if now is None else now
    records = root.records
    closed = []
    for record in records.read_all():
        if record.status != "running" or record.kubeflow_run is None:
            continue
        outcome = lost_outcome(root, record, now)
        if outcome is not None:  # if a step of it still comes, it opens the record again
            outcome = after_push(root, record.run_id, outcome)
            records.write(record.changed(finished=record.finished, **vars(outcome)))
            closed.append(record.run_id)
    for folder in run_folders(root):
        if newest_change(folder) < now - KEPT_SECS:
            shutil.rmtree(folder, ignore_errors=True)
    former = (root.path / name for name in _FORMER if (root.path / name).is_dir())
    for path in (*former, *root.data.glob("[!.]*")):
        if path.stat().st_mtime < now - KEPT_SECS:  # each Plan touches the data that it needs
            _remove(path)
    return closed


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
