"""Applies the rules of retention to a root: at the end of a run, and by the command `prune`."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.atomic_files import remove_below
from pipelines.config.retention import RetentionConfig
from pipelines.errors import BadInputError
from pipelines.report.files import write_index
from pipelines.root import Root
from pipelines.runs.retention.plan import Kind, Removal, plan_removals, removing

_LOGGER = logging.getLogger(__name__)
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def prune_root(
    root: Root, rules: RetentionConfig, dry_run: bool = False, now: datetime | None = None
) -> list[Removal]:
    """Removes all that no rule keeps and nothing needs, and returns the removals.

    `root`: root of the runs; the caller holds its lock.
    """
    removals = plan_removals(root, rules, now or datetime.now(timezone.utc))
    if not dry_run:
        remove(root, removals)
    return removals


def prune_command(root: Root, options: dict[str, Any], dry_run: bool) -> list[Removal]:
    """Prunes a root by the rules of its newest run, or by given ones.

    `given`: rules that replace those of the configuration, by key; None leaves a rule as it is.
    """
    if not root.runs.is_dir():
        raise BadInputError(f"There are no runs in {root}.")
    with root.lock.exclusively("prune"):
        removals = prune_root(root, merge_rules(root, options), dry_run)
    if not dry_run:
        write_index(root)  # it links to reports that may be gone
    return removals


def merge_rules(root: Root, options: dict[str, Any]) -> RetentionConfig:
    """Returns the rules of the newest run's configuration, with given ones in their place."""
    newest = root.records.newest()
    configured = newest.section("retention") if newest else {}
    keys = {key: value for key, value in options.items() if value is not None}
    try:
        rules = RetentionConfig.model_validate({**configured, **keys})
    except ValidationError as error:
        problem = error.errors()[0]
        key = "".join(f"--{part} {problem['input']}: " for part in problem["loc"])
        raise BadInputError(f"{key}{problem['msg'].removeprefix('Value error, ')}") from error
    if rules.is_empty:
        raise BadInputError(
            f"There are no rules for {root}: the newest run had no [retention] in its configuration. "
            "Give --runs, --days, --artifacts or --checkpoints, such as --artifacts 5 --runs 50."
        )
    return rules


def prune_after_run(root: Root, rules: RetentionConfig, say: Any) -> None:
    """Applies the rules at the end of a run; an error is shown and logged, but the run's outcome stays.

    `root`: root of the runs; the caller holds its lock.
    """
    if rules.is_empty:
        return
    try:
        removals = prune_root(root, rules)
    except Exception as error:  # of the disk, or of what is on it
        _LOGGER.exception("pruning %s failed", root)
        say(f"! [retention] was not applied ({type(error).__name__}: {error}); `prune` tries again")
        return
    if any(removal.size_bytes for removal in removals):
        say(f"  [retention] {summary(removals)}")


def summary(removals: list[Removal], dry_run: bool = False) -> str:
    """Returns a sentence with the number and the size of the removals."""
    freed = shown_bytes(sum(removal.size_bytes for removal in removals))
    noun = "file or folder" if len(removals) == 1 else "files and folders"
    return f"{'would remove' if dry_run else 'removed'} {len(removals)} {noun}, {freed}"


def shown_bytes(size: float) -> str:
    """Returns a size with its unit, such as `12.3 MB`."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def lines(root: Root, removals: list[Removal]) -> list[str]:
    return [
        f"{shown_bytes(removal.size_bytes):>10}  {removal.path.relative_to(root)}  ({removal.reason})"
        for removal in removals
    ]


def remove(root: Root, removals: Sequence[Removal], after_step: Callable[[], None] = lambda: None) -> None:
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
