"""Removes the remains of killed runs from a root. The caller, the next run, holds the root's lock."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

from components.trainer.unfinished import UNFINISHED_DIR, run_of, trained_step
from pipelines import atomic_files
from pipelines.config.metadata import MetadataConfig
from pipelines.root.metadata.place import has_store, note_move, root_id, was_moved
from pipelines.root.metadata.store import (
    cancel_killed_executions,
    open_store,
    relocate_artifacts,
)

_LOGGER = logging.getLogger(__name__)


def tidy_root(
    root: Path,
    run_id: str,
    *continued: str,
    settings: MetadataConfig | None = None,
) -> list[str]:
    """Removes the remains of killed runs, and repairs the paths of a root that was moved.

    Returns a note for each training that is lost by this.

    Args:
      root: Root folder of the pipeline.
      run_id: Id of the run that is about to start or resume; its own files are kept.
      continued: Ids of the runs whose training it continues; their files are kept, too.
      settings: Location of ML Metadata. Default: the one recorded in the root.
    """
    killed: list[int] = []
    if has_store(root):
        store = open_store(root, settings)
        moved = relocate_artifacts(store, root / "artifacts") if was_moved(root) else 0
        note_move(root)
        if moved:
            _LOGGER.info("The root was moved to %s: %d artifacts with it", root, moved)
        killed = cancel_killed_executions(store, run_id, root_id(root))
        del store
    lost = []
    for path in _orphaned_paths(root, (run_id, *continued), killed):
        former = run_of(path) if path.parent.name == UNFINISHED_DIR else None
        step = trained_step(path) if former else None
        if step:
            lost.append(f"the training of run {former}, at step {step}, was not resumed: removed")
        _LOGGER.info("Removing %s, which a killed run has left", path)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return lost


def _orphaned_paths(root: Path, run_ids: tuple[str, ...], killed: list[int]) -> Iterator[Path]:
    for pattern in ("serving/.pushing-*", "serving/.removing-*", "data/.*", "runs/*.partial"):
        yield from sorted(root.glob(pattern))
    for pattern in (
        "runs",
        "runs/details/*",
        "metadata",
        "schema",
        ".schema-*",
        "kept/*",
        "schedules",
        "schedules/*",
    ):
        for folder in sorted(root.glob(pattern)):
            yield from atomic_files.left_over(folder)
    for training in sorted(root.glob(f"artifacts/*/*/{UNFINISHED_DIR}/*")):
        if run_of(training) not in run_ids:
            yield training
    for execution_id in killed:
        yield from sorted(root.glob(f"artifacts/*/*/{execution_id}"))
        yield from sorted(root.glob(f"artifacts/*/.system/*/{execution_id}"))
