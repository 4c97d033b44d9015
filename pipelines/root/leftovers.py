"""Removes the remains of killed runs from a root. The caller, the next run, holds the root's lock."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from components.trainer.unfinished import UNFINISHED_DIR, run_of, trained_step
from pipelines import atomic_files
from pipelines.root import Root

_LOGGER = logging.getLogger(__name__)

_SEARCH = "Tuner"  # the component that searches in a folder of its own


def remove_leftovers(root: Root, *run_ids: str) -> list[str]:
    """Removes the remains of killed runs.

    Returns a note for each training, and each search of a Tuner, that is lost by this.

    Args:
      root: Root of the runs.
      run_ids: The run that is about to start or resume, and those whose training it continues; their
        files are kept.
    """
    lost = []
    for path in _orphaned_paths(root, run_ids):
        former = run_of(path) if path.parent.name == UNFINISHED_DIR else None
        is_search = former is not None and path.relative_to(root.artifacts).parts[0] == _SEARCH
        step = trained_step(path) if former and not is_search else None
        if is_search:
            lost.append(f"the search of run {former} was not resumed: removed")
        if step:
            lost.append(f"the training of run {former}, at step {step}, was not resumed: removed")
        _LOGGER.info("Removing %s, which a killed run has left", path)
        atomic_files.remove_below(path.parent, path)  # what a link points to stays
    for folder in root.artifacts.glob("*/*"):
        is_step = re.fullmatch(r"[0-9a-f]{64}", folder.name) and not (folder / "step.json").exists()
        if is_step and not any(folder.glob(f"{UNFINISHED_DIR}/*")):
            _LOGGER.info("Removing %s, a step that a killed run has left", folder)
            atomic_files.remove_below(root.artifacts, folder)
    return lost


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
        if run_of(path) not in run_ids and atomic_files.is_below(path, root.artifacts):
            yield path
