"""The past runs of a root, including those that were killed before they could record their end."""

import time
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.records import UNFINISHED, Decision, RunFacts, RunOutcome, RunRecord, order_key, utc_now
from pipelines.root.signs_of_life import lost_outcome

CLOCK_TOLERANCE = timedelta(minutes=5)
"""A time that is later than now by more than this comes from a clock that was wrong."""


def new_run(root: Root, scheduled_by: str | None = None, now: datetime | None = None) -> dict[str, Any]:
    """Returns the fields that a new record begins with: `run_id`, `number`, `scheduled_by`, `notification`.

    The caller holds the root's lock until it has written the record, so that no two runs get one number.
    """
    runs: list[RunFacts] = [*root.pruned.read_all(), *root.records.read_all()]
    runs.sort(key=lambda run: order_key(run.number, run.run_id))
    now = now or datetime.now(timezone.utc)
    of_tick = [
        run
        for run in runs
        if scheduled_by and run.scheduled_by == scheduled_by and not has_wrong_clock(run, now)
    ]
    if of_tick and of_tick[-1].status not in UNFINISHED:
        raise BadInputError(f"Run {of_tick[-1].run_id} has run {scheduled_by} already; nothing was changed.")
    # Pruned runs keep their ids, because the clock may have been set back.
    taken = {run.run_id for run in runs} | root.records.ids()
    second = now.strftime("%Y%m%d-%H%M%S")
    run_id, suffix = second, 2
    while run_id in taken:
        run_id, suffix = f"{second}-{suffix}", suffix + 1
    return {
        "run_id": run_id,
        "number": runs[-1].number + 1 if runs else 1,
        "scheduled_by": scheduled_by,
        "notification": "pending" if scheduled_by else "",
    }


def has_wrong_clock(run: RunFacts, now: datetime) -> bool:
    """Returns whether a run began more than a day after now: the times it was started for are yet to come.

    A clock that is set back by less makes no run of the last hours count as one of the future.
    """
    return datetime.fromisoformat(run.started) - now > timedelta(days=1)


def initial_fields(root: Root, unfinished: RunRecord | None, scheduled_by: str | None) -> dict[str, Any]:
    """Returns the fields that the record of a run begins with, or those with which it is resumed.

    `unfinished`: run to resume; None for a new run. It keeps its number, as no run began after it.
    """
    if unfinished is None:
        return {**new_run(root, scheduled_by), "started": utc_now(), "attempt": 1}
    scheduled_by = scheduled_by or unfinished.scheduled_by
    return {
        "run_id": unfinished.run_id,
        "number": unfinished.number,
        "scheduled_by": scheduled_by,
        "notification": "pending" if scheduled_by else "",
        "started": unfinished.started,
        "attempt": unfinished.attempt + 1,
    }


def future_runs(records: Iterable[RunRecord], now: datetime | None = None) -> list[RunRecord]:
    """Returns the runs that say they started in the future, because a clock was wrong."""
    limit = (now or datetime.now(timezone.utc)) + CLOCK_TOLERANCE
    return [record for record in records if datetime.fromisoformat(record.started) > limit]


def read_runs(root: Root, now: float | None = None) -> list[RunRecord]:
    """Returns the records of all runs, oldest first; killed runs as interrupted.

    A run on Kubeflow whose steps give no sign of life has failed.
    """
    now = time.time() if now is None else now
    going_on = root.lock.is_held()
    return [
        _as_killed(root, record)
        if _is_of_this_machine(record) and not going_on
        else as_lost(root, record, now)
        for record in root.records.read_all()
    ]


def unfinished_run(root: Root) -> RunRecord | None:
    """Returns the newest run that began, if it did not end: the run that `--resume` continues.

    A run on Kubeflow is tried again there, and any later run reuses its finished steps.

    A run that was killed after its push is continued, too, if its version is served: only its record
    is left to write. If the version was withdrawn, the run has ended.
    """
    newest = root.records.newest()
    if newest is None or newest.status not in UNFINISHED or newest.kubeflow_run:
        return None
    pushed = root.versions.version_of_run(newest.run_id)
    return None if pushed in root.versions.withdrawn() else newest


def continued_runs(root: Root, record: RunRecord) -> tuple[RunRecord, ...]:
    """Returns the run whose training a run continued under changed code, and the runs before that."""
    earlier = root.records.read(record.mended) if record.mended else None
    return (earlier, *continued_runs(root, earlier)) if earlier else ()


def mark_killed(root: Root) -> list[RunRecord]:
    """Corrects the records of killed runs, and returns them. The caller holds the lock: no run is active."""
    records = root.records
    killed = [_as_killed(root, record) for record in records.read_all() if _is_of_this_machine(record)]
    for record in killed:
        records.write(record)
    return killed


def run_of_version(root: Root, version: str | None) -> RunRecord | None:
    """Returns the newest run that pushed a version; None if unknown."""
    pushed = [
        record for record in root.records.read_all() if version is not None and record.version == version
    ]
    return pushed[-1] if pushed else None


def newest_version_ever(root: Root) -> int:
    """Returns the highest version that was ever pushed, 0 without one: numbers are not reused."""
    recorded = (int(record.version) for record in root.records.read_all() if record.version)
    return max((*root.versions.served(), *root.versions.withdrawn(), *recorded), default=0)


def unconfirmed_pushes(root: Root) -> tuple[str, ...]:
    """Returns the runs that pushed but did not end properly, oldest first.

    If the next run makes the same model, that model is served already and not pushed again. This
    confirms the push: any later run pushes another version.
    """
    pushed = [record for record in root.records.read_all() if record.status == "pushed"]
    confirmed = {record.version for record in pushed if record.reason is None}
    return tuple(record.run_id for record in pushed if record.version not in confirmed)


def _is_of_this_machine(record: RunRecord) -> bool:
    """Returns whether a run is active only while a process holds the lock of the root.

    A run on Kubeflow is not: its steps record its end, or `lost_outcome` finds it.
    """
    return record.status == "running" and record.kubeflow_run is None


def as_lost(root: Root, record: RunRecord, now: float) -> RunRecord:
    """Returns the record of a run on Kubeflow; with its outcome if the run is over without saying so."""
    if record.status != "running" or record.kubeflow_run is None:
        return record
    outcome = lost_outcome(root, record, now)
    return record.changed(**vars(after_push(root, record.run_id, outcome))) if outcome else record


def after_push(root: Root, run_id: str, outcome: RunOutcome) -> RunOutcome:
    """Returns the outcome; a run that failed or was stopped after its push counts as pushed."""
    if outcome.status == "pushed":
        return outcome
    version = root.versions.version_of_run(run_id)
    if version is None:
        return outcome
    return RunOutcome("pushed", f"after the push: {outcome.reason}", str(version))


def _as_killed(root: Root, record: RunRecord) -> RunRecord:
    version = root.versions.version_of_run(record.run_id)
    if version is None:
        return record.changed(status="interrupted", reason="the process was killed")
    return record.changed(
        status="pushed", version=str(version), reason="the process was killed after it had pushed the version"
    )


def held_runs(root: Root) -> list[RunRecord]:
    """Returns the runs whose models wait for a decision, oldest first."""
    return [record for record in root.records.read_all() if record.awaits_decision]


def held_ids(root: Root) -> list[str]:
    """Returns the ids of the runs whose models wait for a decision."""
    return [record.run_id for record in held_runs(root)]


def decide(root: Root, record: RunRecord, decision: Decision) -> RunRecord:
    """Records a decision, also in the runs that repeated its result; returns the changed record.

    `root`: root of the runs; its lock is held.
    """
    records = root.records
    for other in records.read_all():
        if other.same_as == record.run_id and other.status == "held":
            records.write(other.changed(decision=decision))
    decided = record.changed(decision=decision)
    records.write(decided)
    return decided


def supersede_held(root: Root, pushed: RunRecord) -> list[str]:
    """Records that a run that has pushed supersedes the held models of older runs; returns their ids.

    A repeated call returns the same ids.

    `root`: root of the runs; its lock is held.
    """
    ids = [record.run_id for record in root.records.read_all()]
    older = ids[: ids.index(pushed.run_id)]
    for record in held_runs(root):
        if record.run_id not in older:
            continue
        version = root.versions.version_of_run(record.run_id)
        if version is None:
            decide(root, record, Decision("superseded", pushed.run_id, utc_now()))
        else:  # its approval was killed after the push
            done = {"status": "pushed", "reason": None, "version": str(version)}
            root.records.write(record.changed(**done, serving_version=str(version)))
    return [
        record.run_id
        for record in root.records.read_all()
        if record.held and record.decision and record.decision.by == pushed.run_id
    ]
