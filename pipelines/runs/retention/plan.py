"""Plan of the removals from a root, with their reasons. It removes nothing yet."""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from components.pusher.provenance import Provenance
from pipelines.atomic_files import is_below, with_real_parent
from pipelines.config.retention import RetentionConfig
from pipelines.errors import counted
from pipelines.root import Root
from pipelines.root.baseline import statistics_folder
from pipelines.root.migration import has_metadata_store
from pipelines.root.records import UNFINISHED, RunRecord
from pipelines.steps.step_folders import FinishedStep, StepFolders


@dataclass(frozen=True)
class KeptRuns:
    """Ids of the runs to keep."""

    records: frozenset[str]  # Runs that keep their record, report and log
    artifacts: frozenset[str]  # Runs that keep all their artifacts, except for the training directory
    checkpoints: frozenset[str]  # Runs that also keep the training directory
    # Origin of each version that serves or can be served again; its model and the statistics of its
    # data stay.
    versions: tuple[Provenance, ...]

    @cached_property
    def models(self) -> frozenset[Path]:
        """Folders of the models of `versions`."""
        return frozenset(with_real_parent(Path(version.model_uri)) for version in self.versions)


def kept_runs(root: Root, records: Sequence[RunRecord], rules: RetentionConfig, now: datetime) -> KeptRuns:
    begun = [record for record in records if record.attempt]  # the others made nothing
    by_id = {record.run_id: record for record in records}
    versions = tuple(origin for _, origin in root.versions.origins())
    needed = _with_predecessors(by_id, _needed(root, begun))
    of_versions = {version.pipeline_run_id for version in versions} & set(by_id)
    unreadable = root.records.ids() - set(by_id)
    needed |= unreadable  # their dependencies are unknown
    by_rule = set(_newest(records, rules, now))
    with_record = _with_predecessors(by_id, by_rule | of_versions) | needed
    artifacts = needed | _made_by_newest(begun, rules.artifacts, with_record)
    checkpoints = needed | _made_by_newest(begun, rules.checkpoints, artifacts)
    return KeptRuns(
        frozenset(with_record),
        frozenset(artifacts | _with_predecessors(by_id, artifacts)),
        frozenset(checkpoints | _with_predecessors(by_id, checkpoints)),
        versions,
    )


def _newest(records: Sequence[RunRecord], rules: RetentionConfig, now: datetime) -> Iterator[str]:
    num_newer, start = 0, now
    for record in reversed(records):
        by_number = rules.runs is not None and num_newer < rules.runs
        recorded_start = datetime.fromisoformat(record.started)
        if recorded_start <= now:  # otherwise a clock was ahead: it began before the next run did
            start = recorded_start
        by_time = rules.days is not None and (now - start) / timedelta(days=1) <= rules.days
        if by_number or by_time or (rules.runs is None and rules.days is None):
            yield record.run_id
        num_newer += record.attempt > 0  # runs that did not even begin displace no others


def _made_by_newest(records: Sequence[RunRecord], number: int | None, kept: Iterable[str]) -> set[str]:
    """Returns the newest runs that are kept and made artifacts; a run that found all unchanged made none."""
    made = [record.run_id for record in records if not record.same_as]
    newest = made if number is None else made[-number:]
    return set(newest) & set(kept)


def _needed(root: Root, records: Sequence[RunRecord]) -> set[str]:
    """Returns the runs that a later run, or one in progress, may need."""
    needed = {record.run_id for record in records[-1:]}
    # Since the root is locked, no other run of this machine is in progress.
    needed |= {run.run_id for run in records if run.status == "running" and run.kubeflow_run}
    needed |= {record.run_id for record in records if record.awaits_decision}
    complete = [record for record in records if record.status not in UNFINISHED]
    needed |= {record.run_id for record in complete[-1:]}  # the next run takes cached artifacts from it
    versions = [record for record in records if record.version]
    newest = max(versions, key=lambda record: int(str(record.version)), default=None)
    needed |= {newest.run_id} if newest else set()  # so that no version number is used twice
    origin = root.schema.origin()
    needed |= {origin.run_id} if origin and origin.accepted_for is not None else set()
    serving = root.versions.origin()
    needed |= {serving.pipeline_run_id} if serving else set()
    return needed & {record.run_id for record in records}


def _with_predecessors(records: dict[str, RunRecord], run_ids: Iterable[str]) -> set[str]:
    """Returns runs, with the runs that they continued or took all artifacts from."""
    waiting, run_ids_found = list(run_ids), set()
    while waiting:
        run_id = waiting.pop()
        if run_id in run_ids_found or run_id not in records:
            continue
        run_ids_found.add(run_id)
        waiting += [earlier for earlier in (records[run_id].mended, records[run_id].same_as) if earlier]
    return run_ids_found


_LOGGER = logging.getLogger(__name__)

Kind = Literal["artifact", "step", "data", "record", "report", "details", "log"]
_CHECKPOINTS = "model_run"
_REMOVING = ".removing-"
_RUN_ID = re.compile(r"\d{8}-\d{6}(-[0-9a-z]+)*")


@dataclass(frozen=True)
class Removal:
    """A file or folder to remove."""

    kind: Kind  # Kind of the file or folder
    path: Path  # Path of the file or folder
    reason: str
    size_bytes: int

    def as_json(self) -> dict[str, Any]:
        """Returns the fields for `prune --json`."""
        return {"kind": self.kind, "path": str(self.path), "reason": self.reason, "bytes": self.size_bytes}


def plan_removals(root: Root, rules: RetentionConfig, now: datetime) -> list[Removal]:
    """Returns the removals, in an order in which nothing left refers to a removed file at any time.

    `root`: root of the runs; its lock is held.
    """
    records = root.records.read_all()
    kept = kept_runs(root, records, rules, now)
    removals = [*_begun(root), *_steps(root, kept, rules, records), *_older_artifacts(root, kept, records)]
    for record in records:
        if record.run_id not in kept.records:
            why = f"run {record.run_id} is {_beyond(rules)}"
            # The record first, since it refers to the others.
            files: tuple[tuple[Kind, Path], ...] = (
                ("record", root.records.file(record.run_id)),
                ("report", root.report(record.run_id)),
                ("details", root.details(record.run_id).folder),
                ("log", root.log(record.run_id)),
            )
            for kind, path in files:
                if path.exists():
                    removals.append(Removal(kind, path, why, _size(path)))
    return [*removals, *_without_record(root, records)]


def _begun(root: Root) -> Iterator[Removal]:
    """Yields what an interrupted removal has left of a step or of its checkpoints."""
    folders = [path for depth in ("*", "*/*") for path in root.artifacts.glob(f"{depth}/{_REMOVING}*")]
    for folder in sorted(folders):
        if is_below(folder, root.artifacts):
            yield Removal("artifact", folder, "its removal was begun", _size(folder))


def _steps(
    root: Root, kept: KeptRuns, rules: RetentionConfig, records: Sequence[RunRecord]
) -> Iterator[Removal]:
    """Yields the steps, the checkpoints, and the copies of data that nothing needs."""
    if any(record.status == "running" and record.kubeflow_run for record in records):
        return  # its record does not say yet which steps it uses
    finished = StepFolders(root.artifacts).all_finished()
    of_runs = _used_steps(kept.artifacts, finished, records)
    trained = _used_steps(kept.checkpoints, finished, records)
    needed = of_runs | _steps_of_versions(root, kept, finished)
    needed |= {name for step in finished if step.key in of_runs for name in _input_steps(step)}
    for step in reversed(finished):  # an interrupted removal leaves no step without its inputs
        if not is_below(step.folder, root.artifacts):
            _LOGGER.warning(
                "%s is %s, which is outside of %s: prune leaves it alone.",
                step.folder,
                with_real_parent(step.folder),
                root.artifacts,
            )
        elif step.key not in needed:
            why = f"not used by the newest {rules.artifacts} runs whose artifacts are kept"
            if rules.artifacts is None:
                why = f"the runs that used it are {_beyond(rules)}"
            yield Removal("step", step.folder, why, _size(step.folder))
        elif _CHECKPOINTS in step.outputs and step.key not in trained:
            number, what = rules.checkpoints, "runs whose checkpoints are kept"
            if step.key not in of_runs or number is None:
                number, what = rules.artifacts, "runs whose artifacts are kept"
            why = f"not used by the newest {number} {what}"
            folder = step.folder / _CHECKPOINTS
            if folder.exists():
                yield Removal("artifact", folder, why, _size(folder))
    begun = [record for record in records if record.attempt]
    if begun and begun[-1].status in UNFINISHED:
        return  # what a run has left unfinished is for `--resume`
    for folder in StepFolders(root.artifacts).unfinished():
        if is_below(folder, root.artifacts):
            yield Removal("step", folder, "left by a run that cannot be resumed", _size(folder))
    # Names of the folders that the ExampleGens have read, and of the copies of remote data.
    read = {
        part
        for record in records
        if record.run_id in kept.artifacts
        for file in record.data_files
        for part in Path(file["path"]).parts
    }
    for step in finished:
        if step.key in of_runs:
            base = step.plan["parameters"].get("parameters", {}).get("input_base", {})
            read.add(Path(base.get("fieldValue", {}).get("stringValue", "")).name)
    for folder in sorted(root.data.glob("[!.]*")):
        if folder.name not in read:
            why = "a copy of data that no run with kept artifacts reads"
            yield Removal("data", folder, why, _size(folder))


def _used_steps(
    run_ids: Collection[str], finished: Sequence[FinishedStep], records: Sequence[RunRecord]
) -> set[tuple[str, str]]:
    """Returns the steps that some runs have made, reused or read, by component and name."""
    used = {
        (component.name, component.step)
        for record in records
        if record.run_id in run_ids
        for component in record.components
    }
    # The record of a run may be unreadable.
    used |= {step.key for step in finished if step.run_id in run_ids}
    return used


def _steps_of_versions(root: Root, kept: KeptRuns, finished: Sequence[FinishedStep]) -> set[tuple[str, str]]:
    """Returns the steps with the models that serve or can serve again, and with the statistics of their data.

    In a pipeline whose Pusher is not ours, it is the newest blessed model.
    """
    needed = {
        step.key
        for step in finished
        if any(with_real_parent(model.parent) == with_real_parent(step.folder) for model in kept.models)
    }
    for version in kept.versions:
        statistics = statistics_folder(root, version.pipeline_run_id)
        needed.add((statistics.parents[1].name, statistics.parent.name))
    for step in [step for step in finished if step.has_blessed][-1:]:
        needed |= {step.key, *_input_steps(step)}
    return needed


def _input_steps(step: FinishedStep) -> Iterator[tuple[str, str]]:
    for outputs in step.plan["inputs"].values():
        yield from ((output["component"], output["step"]) for output in outputs if "step" in output)


def _older_artifacts(root: Root, kept: KeptRuns, records: Sequence[RunRecord]) -> Iterator[Removal]:
    """Yields artifacts of earlier versions, `<component>/<key>/<number>`, which no run can use."""
    if has_metadata_store(root):
        return  # the next run takes statistics from them
    held = [record.held for record in records if record.awaits_decision and record.held]
    needed = set(kept.models)
    for model in held:
        paths = filter(None, (model.model_uri, model.saved_model, model.warmup))
        needed |= {with_real_parent(root.path / path) for path in paths}
    for folder in sorted(root.artifacts.glob("*/*/*")):
        is_older = folder.name.isdecimal() or folder.parent.name == ".system"
        is_needed = any(path.is_relative_to(with_real_parent(folder)) for path in needed)
        if is_older and not is_needed and is_below(folder, root.artifacts):
            why = "made by an earlier version of this program, and needed by no version of the model"
            yield Removal("artifact", folder, why, _size(folder))


def _without_record(root: Root, records: Sequence[RunRecord]) -> Iterator[Removal]:
    """Yields reports and logs of runs whose record was deleted, after an interrupted removal."""
    recorded_ids = {record.run_id for record in records}
    beside: dict[Kind, Iterator[Path]] = {
        "report": root.runs.glob("*.html"),
        "details": root.run_details.glob("*"),
        "log": root.logs.glob("*.log"),
    }
    for kind, paths in beside.items():
        for path in sorted(paths):
            has_record = path.stem in recorded_ids or root.records.file(path.stem).exists()
            if _RUN_ID.fullmatch(path.stem) and not has_record:
                why = f"the record of run {path.stem} no longer exists"
                yield Removal(kind, path, why, _size(path))


def _beyond(rules: RetentionConfig) -> str:
    """Returns the rules that remove a record, as text."""
    parts = []
    if rules.runs is not None:
        parts.append("not the newest run" if rules.runs == 1 else f"not among the newest {rules.runs} runs")
    if rules.days is not None:
        parts.append(f"older than {counted(rules.days, 'day')}")
    return " and ".join(parts) or "without a record"


def removing(folder: Path) -> Path:
    """Returns the name that a folder has while it is removed, so that no run uses what is left of it."""
    return folder.with_name(f"{_REMOVING}{folder.name.removeprefix(_REMOVING)}")


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(_size(item) for item in path.iterdir())
    return path.lstat().st_size if path.exists() or path.is_symlink() else 0
