"""Removes the remains of killed runs from a root. The caller, the next run, holds the root's lock."""

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from components.trainer.unfinished import UNFINISHED_DIR, trained_step, training_run_id
from pipelines import atomic_files
from pipelines.root import Root
from pipelines.root.lock import FileLock
from pipelines.root.records import RunRecord

_LOGGER = logging.getLogger(__name__)

_TO_ACCEPT = 3
_SEARCH = "Tuner"  # the component that searches in a separate folder


def remove_leftovers(root: Root, *run_ids: str) -> list[str]:
    """Removes the remains of killed runs; those of runs in progress on Kubeflow stay.

    Returns a note for each training, and each search of a Tuner, that is lost by this.

    `run_ids`: the run that is about to start or resume, and those whose training it continues; their files
    are kept.
    """
    records = root.records.read_begun()
    going_on = [run.run_id for run in records if run.status == "running" and run.kubeflow_run]
    run_ids = (*run_ids, *going_on)
    lost = []
    for path in _orphaned_paths(root, run_ids):
        earlier = training_run_id(path) if path.parent.name == UNFINISHED_DIR else None
        is_search = earlier is not None and path.relative_to(root.artifacts).parts[0] == _SEARCH
        step = trained_step(path) if earlier and not is_search else None
        if is_search:
            lost.append(f"the search of run {earlier} was not resumed: removed")
        if step:
            lost.append(f"the training of run {earlier}, at step {step}, was not resumed: removed")
        _LOGGER.info("Removing %s, left by a killed run", path)
        atomic_files.remove_below(path.parent, path)  # what a link points to stays
    for folder in root.artifacts.glob("*/*"):
        is_step = re.fullmatch(r"[0-9a-f]{64}", folder.name) and not (folder / "step.json").exists()
        is_left = is_step and not any(folder.glob(f"{UNFINISHED_DIR}/*"))
        if is_left and not _is_at_work(folder):
            _LOGGER.info("Removing %s, a step left by a killed run", folder)
            atomic_files.remove_below(root.artifacts, folder)
    for folder in _unread_copies(root, records):
        atomic_files.remove_below(root.kept, folder)
    return lost


def _is_at_work(step: Path) -> bool:
    """Returns True if a process makes a step: on Kubeflow, also one of a run in which another step failed."""
    return FileLock(step / ".lock").is_held()


def _unread_copies(root: Root, records: Sequence[RunRecord]) -> Iterator[Path]:
    """Yields the copies in `kept` of runs whose versions can no longer be served, nor their data accepted.

    Earlier versions of this program made them: of each pushed run on Kubeflow, and of a root that was taken
    over.
    """
    needed = {origin.pipeline_run_id for _, origin in root.versions.origins()}
    needed |= {run.run_id for run in records if run.status == "running" or run.awaits_decision}
    needed |= {record.run_id for record in records[-_TO_ACCEPT:]}
    schema = root.schema.read()
    if schema is not None and schema.origin is not None:
        needed.add(schema.origin.run_id)  # new data are compared with that run's
    for folder in sorted(root.kept.glob("*")):
        if folder.is_dir() and folder.name not in needed:
            yield folder


def _orphaned_paths(root: Root, run_ids: tuple[str, ...]) -> Iterator[Path]:
    yield from sorted(root.serving.glob(".pushing-*"))
    yield from sorted(root.serving.glob(".removing-*"))
    yield from sorted(root.data.glob(".*"))
    yield from sorted(root.runs.glob("*.partial"))
    for folder in (
        root.runs,
        *sorted(root.run_details.glob("*")),
        *root.schema.folders(),
        *sorted(root.kept.glob("*")),
        root.schedules,
        *sorted(root.schedules.glob("*")),
    ):
        yield from atomic_files.left_over(folder)
    for path in sorted(root.artifacts.glob(f"*/*/{UNFINISHED_DIR}/*")):
        # Otherwise a link may lead to the artifacts of another root.
        is_orphaned = training_run_id(path) not in run_ids and not _is_at_work(path.parents[1])
        if is_orphaned and atomic_files.is_below(path, root.artifacts):
            yield path
