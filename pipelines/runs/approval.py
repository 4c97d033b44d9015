"""The decision about a held model: it is pushed as it is, or dropped."""

import getpass
import os
import time
from collections.abc import Callable
from pathlib import Path

from pipelines.errors import BadInputError
from pipelines.report.files import write_pages
from pipelines.root import Root
from pipelines.root.history import decide, held_ids, newest_version_ever, supersede_held
from pipelines.root.records import Decision, HeldModel, RunRecord, utc_now
from pipelines.runs.mlflow_registry import register_versions
from pipelines.runs.recorder import lineage_events


def approve(
    root: Root, run_id: str, because: str, by: str = "", say: Callable[[str], None] = print
) -> RunRecord:
    """Pushes the held model of a run, and returns the run's record.

    If the process is killed, the next call completes the push, and pushes nothing twice.
    """
    with root.lock.exclusively("approve"):
        record = _awaiting(root, run_id)
        held = record.held
        if held is None:
            raise AssertionError("unreachable: a run that awaits a decision has a model")
        for path in filter(None, (held.model_uri, held.saved_model, held.warmup)):
            if not (root.path / path).exists():
                raise BadInputError(
                    f"The held model of run {record.run_id} cannot be pushed: {root.path / path} does not "
                    "exist. Restore it, or run again."
                )
        serving = root.versions.serving()
        if serving != record.baseline_version and root.versions.version_of_run(record.run_id) is None:
            say(
                f"the model was compared with {_version(record.baseline_version)}, and {_version(serving)} "
                "is live now"
            )
        decision = record.decision or Decision("approved", by or _user(), utc_now(), _given(because))
        # Before the push, which is then never without a reason.
        record = decide(root, record, decision)
        version = str(_push(root, record, held))
        record = record.changed(status="pushed", reason=None, version=version, serving_version=version)
        root.records.write(record)
        if (events := lineage_events(root, record)) and (lost := events.approved(record)):
            say(lost)
        for other in supersede_held(root, record):
            say(f"the held model of run {other} is superseded")
        root.schema.adopt(*held_ids(root))
        _write_pages(root, record, say)
        if problem := register_versions(root, record):
            say(problem)
            record = record.changed(not_registered=problem)
            root.records.write(record)
    return record


def reject(
    root: Root, run_id: str, because: str, by: str = "", say: Callable[[str], None] = print
) -> RunRecord:
    """Records that the held model of a run is not pushed, and returns the run's record.

    Its files are removed like those of any run that pushed nothing.
    """
    with root.lock.exclusively("approve"):
        record = _awaiting(root, run_id)
        if record.decision is not None:
            raise BadInputError(
                f"Run {record.run_id} was {record.decision}, but its push was interrupted. Repeat the "
                "approval; `rollback` goes back to the version before."
            )
        record = decide(root, record, Decision("rejected", by or _user(), utc_now(), _given(because)))
        root.schema.adopt(*held_ids(root))
        _write_pages(root, record, say)
    return record


def _awaiting(root: Root, run_id: str) -> RunRecord:
    record = root.records.read(run_id)
    waiting = ", ".join(held_ids(root)) or "none"
    if record is None:
        pruned = any(run.run_id == run_id for run in root.pruned.read_all())
        why = "its record was removed by [retention]" if pruned else f"there is no such run in {root}"
        raise BadInputError(f"Run {run_id} has no held model: {why}. Held: {waiting}.")
    if record.status == "held" and record.same_as and record.decision is None:
        return _awaiting(root, record.same_as)  # it repeated the run that has the model
    if record.decision is not None and not record.awaits_decision:
        version = f", as version {record.version}" if record.version else ""
        raise BadInputError(
            f"Run {run_id} was {record.decision}{version}, at {record.decision.time}. Held: {waiting}."
        )
    if not record.awaits_decision:
        raise BadInputError(
            f"Run {run_id} has no held model: its status is {record.status!r}. Held: {waiting}."
        )
    newer = _newer_push(root, record)
    if newer is not None:
        decide(root, record, Decision("superseded", newer.run_id, utc_now()))
        raise BadInputError(
            f"The held model of run {run_id} is superseded: run {newer.run_id} has pushed version "
            f"{newer.version} since. Held: {waiting}."
        )
    return record


def _newer_push(root: Root, record: RunRecord) -> RunRecord | None:
    """Returns a later run that has pushed, but has not superseded the model yet, with its version."""
    records = root.records.read_all()
    ids = [run.run_id for run in records]
    later = records[ids.index(record.run_id) + 1 :]
    for run in reversed(later):
        version = run.version or root.versions.version_of_run(run.run_id)
        if version:
            return run.changed(version=str(version))
    return None


def _push(root: Root, record: RunRecord, held: HeldModel) -> int:
    """Pushes a model as the Pusher does; one that was pushed before it could be recorded stays."""
    import components  # noqa: F401  - before any TFX import
    from components.pusher.executor import Pushed, PushRequest, PushSettings, push
    from components.pusher.provenance import Provenance

    done = push(
        PushRequest(
            model_path=str(root.path / held.saved_model),
            provenance=Provenance(record.run_id, str(root.path / held.model_uri), held.fingerprint),
            base_directory=str(root.serving),
            settings=PushSettings(
                keep=record.section("pusher").get("keep"), newer_than=newest_version_ever(root)
            ),
            refusal=None,
            warmup=str(root.path / held.warmup) if held.warmup else None,
        ),
        time.time(),
    )
    if not isinstance(done, Pushed):
        raise AssertionError("unreachable: nothing refuses the push")
    return done.version


def _write_pages(root: Root, record: RunRecord, say: Callable[[str], None]) -> None:
    if not Path(record.report or "").is_file():
        return  # `report` makes it on demand
    try:
        write_pages(root, record, root.report(record.run_id))
    except OSError as error:
        say(f"{error}; `report` makes the page again")


def _given(because: str) -> str:
    text = " ".join(because.split())
    if not text:
        raise BadInputError("--because is empty: give the reason, for those who read the report later.")
    return text


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # no entry for the user id, as in a container
        name = f"uid {os.getuid()}"
    return f"{name}@{os.uname().nodename}"


def _version(version: str | None) -> str:
    return f"version {version}" if version else "no version"
