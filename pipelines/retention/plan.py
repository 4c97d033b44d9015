"""Plan of the removals from a root, with their reasons. It removes nothing yet."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pipelines.atomic_files import is_below
from pipelines.config.retention import RetentionConfig
from pipelines.errors import counted
from pipelines.retention.kept_runs import KeptRuns, kept_runs
from pipelines.root import Root
from pipelines.root.records import UNFINISHED, RunRecord
from pipelines.steps.step_folders import StepFolders

_LOGGER = logging.getLogger(__name__)

Kind = Literal["artifact", "step", "execution", "data", "record", "report", "details", "log"]
_RUN_ID = re.compile(r"\d{8}-\d{6}(-[0-9a-z]+)*")


@dataclass(frozen=True)
class Removal:
    """A file or folder to remove.

    Attributes:
      kind: Kind of the file or folder.
      path: Path of the file or folder.
      reason: Reason of the removal.
      size_bytes: Size of its files.
      artifact_id: Id in ML Metadata; None if it is not an artifact.
    """

    kind: Kind
    path: Path
    reason: str
    size_bytes: int
    artifact_id: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the fields for `prune --json`."""
        return {
            "kind": self.kind,
            "path": str(self.path),
            "reason": self.reason,
            "bytes": self.size_bytes,
        }


def plan_removals(
    root: Root, rules: RetentionConfig, now: datetime, store: Any = None
) -> list[Removal]:
    """Returns the removals, in an order in which nothing left refers to a removed file at any time.

    Args:
      root: Root of the runs; its lock is held.
      rules: Rules of the configuration.
      now: Current time, UTC.
      store: ML Metadata of the root; None without one.
    """
    records = root.records.read_all()
    kept = kept_runs(root, records, rules, now)
    removals = list(_artifacts(root, kept, rules, store, records)) if store is not None else []
    removals += _steps(root, kept, rules, records)
    for record in records:
        if record.run_id not in kept.records:
            why = f"run {record.run_id} is {_beyond(rules)}"
            # The record first, since it refers to the others.
            for kind, path in _files_of(root, record.run_id):
                if path.exists():
                    removals.append(Removal(kind, path, why, _size(path)))
    return [*removals, *_without_record(root, records)]


def _artifacts(
    root: Root, kept: KeptRuns, rules: RetentionConfig, store: Any, records: Sequence[RunRecord]
) -> Iterator[Removal]:
    from pipelines.retention.stored_artifacts import must_stay, read_executions, runs_of_versions

    found = read_executions(store, root)
    of_versions = runs_of_versions(found.artifacts, kept)
    staying = {
        stored.artifact.id: stored.path
        for stored in found.artifacts
        if stored.is_live and must_stay(stored, kept, of_versions)
    }
    holding = {folder for path in staying.values() for folder in (path, *path.parents)}
    for stored in found.artifacts:
        if stored.artifact.id in staying:
            continue
        if stored.path in holding:
            _LOGGER.warning(
                "%s, an artifact of run %s, stays: it holds an artifact that is needed.",
                stored.artifact.uri,
                max(stored.made_by, default="that is unknown"),
            )
            continue
        if not stored.is_live and not stored.path.exists():
            continue
        made_by = max(stored.made_by, default="that is unknown")
        why = "its removal was begun"
        if stored.is_live:
            number, what = rules.artifacts, "runs whose artifacts stay"
            if stored.used_by & kept.artifacts:
                number, what = rules.checkpoints, "runs whose checkpoints stay"
            why = f"run {made_by} is not among the newest {number} {what}"
            if not stored.made_by & kept.records:
                why = f"run {made_by} is {_beyond(rules)}"
        path = Path(stored.artifact.uri)
        yield Removal("artifact", path, why, _size(path), stored.artifact.id)
    for execution, runs in sorted(found.runs.items()):
        if not runs & kept.artifacts:
            for folder in sorted(root.artifacts.glob(f"*/.system/*/{execution}")):
                if not is_below(folder, root.artifacts):
                    continue
                yield Removal(
                    "execution", folder, f"run {max(runs)} keeps no artifacts", _size(folder)
                )
    if any(record.kubeflow_run for record in records):
        return  # another rule removes the copies that its runs read
    read = {Path(base).name for run, base in found.input_bases.items() if run in kept.artifacts}
    for folder in sorted(root.data.glob("[!.]*")):
        if folder.name not in read:
            why = "a copy of data that no run reads whose artifacts stay"
            yield Removal("data", folder, why, _size(folder))


def _steps(
    root: Root, kept: KeptRuns, rules: RetentionConfig, records: Sequence[RunRecord]
) -> Iterator[Removal]:
    """Yields the steps that no run with artifacts has used, except for the newest blessed model's."""
    folders = StepFolders(root.artifacts)
    finished = folders.all_finished()
    needed = {
        (component.name, component.step)
        for record in records
        if record.run_id in kept.artifacts
        for component in record.components
    }
    blessed = [step for step in finished if step.has_blessed]
    for step in blessed[-1:]:
        inputs = (output for outputs in step.plan["inputs"].values() for output in outputs)
        needed |= {
            (step.component, step.name),
            *((output["component"], output["step"]) for output in inputs),
        }
    for step in finished:
        if (step.component, step.name) not in needed:
            why = f"none of the newest {rules.artifacts} runs whose artifacts stay has used it"
            if rules.artifacts is None:
                why = f"the runs that have used it are {_beyond(rules)}"
            yield Removal("step", step.folder, why, _size(step.folder))
    if records and records[-1].status not in UNFINISHED:
        for folder in folders.unfinished():
            yield Removal("step", folder, "a run that cannot be resumed left it", _size(folder))


def _files_of(root: Root, run_id: str) -> Iterator[tuple[Kind, Path]]:
    yield "record", root.records.file(run_id)
    yield "report", root.report(run_id)
    yield "details", root.details(run_id).folder
    yield "log", root.log(run_id)


def _without_record(root: Root, records: Sequence[RunRecord]) -> Iterator[Removal]:
    """Yields reports and logs of runs whose record is gone, after an interrupted removal."""
    known = {record.run_id for record in records}
    beside: dict[Kind, Iterator[Path]] = {
        "report": root.runs.glob("*.html"),
        "details": root.run_details.glob("*"),
        "log": root.logs.glob("*.log"),
    }
    for kind, paths in beside.items():
        for path in sorted(paths):
            has_record = path.stem in known or root.records.file(path.stem).exists()
            if _RUN_ID.fullmatch(path.stem) and not has_record:
                why = f"the record of run {path.stem} is gone"
                yield Removal(kind, path, why, _size(path))


def _beyond(rules: RetentionConfig) -> str:
    """Returns the rules that remove a record, as text."""
    parts = []
    if rules.runs is not None:
        parts.append(
            "not the newest run" if rules.runs == 1 else f"not among the newest {rules.runs} runs"
        )
    if rules.days is not None:
        parts.append(f"older than {counted(rules.days, 'day')}")
    return " and ".join(parts) or "without a record"


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(_size(item) for item in path.iterdir())
    return path.lstat().st_size if path.exists() or path.is_symlink() else 0
