"""The past runs of a root, also those that were killed before they could say how they ended."""

from pathlib import Path

from pipelines.run_lock import is_locked
from pipelines.run_record import UNFINISHED, RunRecord, RunRecords


def read_runs(root: Path) -> list[RunRecord]:
    """Returns the records of all runs, oldest first; those that were killed as interrupted."""
    going_on = is_locked(root)
    return [
        _as_killed(record) if record.status == "running" and not going_on else record
        for record in RunRecords(root).read_all()
    ]


def unfinished_run(root: Path) -> RunRecord | None:
    """Returns the newest run if it did not end, which is what `--resume` goes on with."""
    newest = max(RunRecords(root).read_all(), key=lambda record: record.run_id, default=None)
    return newest if newest is not None and newest.status in UNFINISHED else None


def mark_killed(root: Path) -> None:
    """Corrects the records of runs that were killed. The caller holds the lock: nobody else runs."""
    records = RunRecords(root)
    for record in records.read_all():
        if record.status == "running":
            records.write(_as_killed(record))


def _as_killed(record: RunRecord) -> RunRecord:
    return record.changed(status="interrupted", reason="the process was killed")
