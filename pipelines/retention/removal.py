"""Carries out planned removals: after each step, ML Metadata, records and files agree."""

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.atomic_files import remove_below
from pipelines.retention.plan import Kind, Removal
from pipelines.root import Root
from pipelines.steps.step_folders import forget_finished

_LOGGER = logging.getLogger(__name__)


def remove(
    root: Root,
    removals: Sequence[Removal],
    store: Any = None,
    after_step: Callable[[], None] = lambda: None,
) -> None:
    """Removes files and folders.

    First, the facts to keep about the removed runs are written. Then all artifacts are marked in one
    transaction: the cache does not use them any more, and an interrupted removal resumes when it is called
    again. An artifact is marked as deleted once its files are gone.

    Args:
      root: Root of the runs; its lock is held.
      removals: Removals from `plan_removals`.
      store: ML Metadata of the root; None without one.
      after_step: Function called after each change on disk.

    Raises:
      OSError: A file cannot be removed. The removals after it are not carried out.
      BadInputError: A link leads a removal out of the root, likewise.
    """
    from ml_metadata.proto import metadata_store_pb2

    if of_runs := [removal.path.stem for removal in removals if removal.kind == "record"]:
        root.pruned.add(filter(None, map(root.records.read, of_runs)))
        after_step()
    states = metadata_store_pb2.Artifact
    ids = [removal.artifact_id for removal in removals if removal.artifact_id is not None]
    if store is not None and ids:
        _set_state(store, ids, states.MARKED_FOR_DELETION)
        after_step()
    folders: dict[Kind, Path] = {
        "artifact": root.artifacts,
        "step": root.artifacts,
        "execution": root.artifacts,
        "data": root.data,
        "record": root.runs,
        "report": root.runs,
        "details": root.run_details,
        "log": root.logs,
    }
    for removal in removals:
        _LOGGER.info("Removing %s: %s", removal.path, removal.reason)
        if removal.kind == "step":
            forget_finished(removal.path)
        remove_below(folders[removal.kind], removal.path)
        after_step()
    if store is not None and ids:
        _set_state(store, ids, states.DELETED)
        after_step()


def _set_state(store: Any, ids: Iterable[int], state: int) -> None:
    artifacts = store.get_artifacts_by_id(list(ids))
    for artifact in artifacts:
        artifact.state = state
    store.put_artifacts(artifacts)
