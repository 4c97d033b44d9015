"""Removes the remains of killed runs from a root. The caller, the next run, holds the root's lock."""

import logging
from collections.abc import Iterator
from pathlib import Path

from components.trainer.unfinished import UNFINISHED_DIR, run_of, trained_step
from pipelines import atomic_files
from pipelines.config.metadata import MetadataConfig
from pipelines.root import Root
from pipelines.root.metadata.store import cancel_killed_executions, relocate_artifacts

_LOGGER = logging.getLogger(__name__)

_SEARCHES = "best_hyperparameters"  # the Tuner's output, beside which it searches


def tidy_root(
    root: Root,
    run_id: str,
    *continued: str,
    settings: MetadataConfig | None = None,
) -> list[str]:
    """Removes the remains of killed runs, and repairs the paths of a root that was moved.

    Returns a note for each training, and each search of a Tuner, that is lost by this.

    Args:
      root: Root of the runs.
      run_id: Id of the run that is about to start or resume; its own files are kept.
      continued: Ids of the runs whose training it continues; their files are kept, too.
      settings: Location of ML Metadata. Default: the one recorded in the root.
    """
    killed: list[int] = []
    if root.metadata.exists():
        store = root.metadata.open(settings)
        moved = relocate_artifacts(store, root.artifacts) if root.metadata.was_moved() else 0
        root.metadata.note_move()
        if moved:
            _LOGGER.info("The root was moved to %s: %d artifacts with it", root, moved)
        killed = cancel_killed_executions(store, run_id, root.metadata.root_id())
        del store
    lost = []
    for path in _orphaned_paths(root, (run_id, *continued), killed):
        former = run_of(path) if path.parent.name == UNFINISHED_DIR else None
        is_search = former is not None and path.parent.parent.name == _SEARCHES
        step = trained_step(path) if former and not is_search else None
        if is_search:
            lost.append(f"the search of run {former} was not resumed: removed")
        if step:
            lost.append(f"the training of run {former}, at step {step}, was not resumed: removed")
        _LOGGER.info("Removing %s, which a killed run has left", path)
        atomic_files.remove_below(path.parent, path)  # what a link points to stays
    return lost


def _orphaned_paths(root: Root, run_ids: tuple[str, ...], killed: list[int]) -> Iterator[Path]:
    yield from sorted(root.serving.glob(".pushing-*"))
    yield from sorted(root.serving.glob(".removing-*"))
    yield from sorted(root.data.glob(".*"))
    yield from sorted(root.runs.glob("*.partial"))
    for folder in (
        root.runs,
        *sorted(root.run_details.glob("*")),
        root.metadata.folder,
        *root.schema.folders(),
        *sorted(root.kept.glob("*")),
        root.schedules,
        *sorted(root.schedules.glob("*")),
    ):
        yield from atomic_files.left_over(folder)
    patterns = [f"*/*/{UNFINISHED_DIR}/*"]
    for execution_id in killed:
        patterns += [f"*/*/{execution_id}", f"*/.system/*/{execution_id}"]
    for path in (path for pattern in patterns for path in sorted(root.artifacts.glob(pattern))):
        if path.parent.name == UNFINISHED_DIR and run_of(path) in run_ids:
            continue
        # Otherwise a link may lead to the artifacts of another root.
        if atomic_files.is_below(path, root.artifacts):
            yield path
