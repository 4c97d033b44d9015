"""Held models of a root: those that passed the gate with a doubt, and wait for a person."""

from pipelines.root import Root
from pipelines.root.records import Decision, RunRecord, utc_now


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
