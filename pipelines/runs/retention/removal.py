"""Carries out planned removals: after each of them, records and files agree."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from pipelines.atomic_files import remove_below
from pipelines.root import Root
from pipelines.runs.retention.plan import Kind, Removal, removing

_LOGGER = logging.getLogger(__name__)


def remove(
    root: Root,
    removals: Sequence[Removal],
    after_step: Callable[[], None] = lambda: None,
) -> None:
    """Removes files and folders.

    First, the facts to keep about the removed runs are written. A folder of artifacts is renamed before it is
    removed, so that no run uses half of it; the next removal continues an interrupted one.

    `root`: root of the runs; its lock is held.
    """
    if of_runs := [removal.path.stem for removal in removals if removal.kind == "record"]:
        root.pruned.add(filter(None, map(root.records.read, of_runs)))
        after_step()
    folders: dict[Kind, Path] = {
        "artifact": root.artifacts,
        "step": root.artifacts,
        "data": root.data,
        "record": root.runs,
        "report": root.runs,
        "details": root.run_details,
        "log": root.logs,
    }
    for removal in removals:
        _LOGGER.info("Removing %s: %s", removal.path, removal.reason)
        path = removal.path
        if removal.kind in ("step", "artifact") and path != removing(path):
            path = path.rename(removing(path))
            after_step()
        remove_below(folders[removal.kind], path)
        after_step()
