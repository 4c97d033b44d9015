"""Signs of life of a run on Kubeflow: files in the root that its steps touch while they work.

A step that is killed can't say so, and Kubeflow does not run the exit handler again after a *Retry*, so each
reader of a record whose status is `running` looks at these files.
"""

import contextlib
import os
import re
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

from pipelines.root.records import RunOutcome, RunRecord
from pipelines.root.root import Root

BEAT_SECS = 60.0
"""Time between two signs of life of a step."""

LOST_SECS = 15 * 60.0
"""Silence of a step at work after which it counts as killed."""

SILENT_SECS = 14 * 24 * 3600
"""Silence after which a run counts as over though no step was at work."""

_SUFFIX = ".alive"
_SECS_OF_A_DAY = 24 * 3600


def folder_of_run(root: Root, kubeflow_run: str) -> Path:
    """Returns the folder for the files that the steps of a run leave for each other."""
    # The folder is removed with the run: `..`, or an empty id, must not name one that holds it.
    return root.kubeflow / (re.sub(r"[^A-Za-z0-9._-]", "-", kubeflow_run).lstrip(".") or "-")


@contextlib.contextmanager
def giving_signs(folder: Path, component: str, every_secs: float = BEAT_SECS) -> Iterator[None]:
    """Gives signs of life of a step until the block ends."""
    file, has_ended = folder / f"{component}{_SUFFIX}", threading.Event()

    def beat() -> None:
        while not has_ended.wait(every_secs):
            with contextlib.suppress(OSError):
                os.utime(file)

    with contextlib.suppress(OSError):  # the step itself says what is wrong with the root
        folder.mkdir(parents=True, exist_ok=True)
        file.touch()
    threading.Thread(target=beat, name="signs of life", daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()
        with contextlib.suppress(OSError):
            file.unlink()


def lost_outcome(root: Root, record: RunRecord, now: float) -> RunOutcome | None:
    """Returns the outcome of a run that is over without its record saying so; None if it may still run."""
    folder = folder_of_run(root, str(record.kubeflow_run))
    latest = now + LOST_SECS  # later times are of a clock that was wrong, and say nothing
    signs = {
        file.stem: changed for file, changed in _changes(folder.glob(f"*{_SUFFIX}")) if changed <= latest
    }
    if signs:
        component, newest = max(signs.items(), key=lambda item: item[1])
        if newest >= now - LOST_SECS:
            return None
        since = datetime.fromtimestamp(newest, timezone.utc).isoformat(timespec="seconds")
        return RunOutcome(
            "failed",
            reason=f"{component}: no sign of life since {since}: it was killed, or was out of "
            f"memory. Kubeflow's run {record.kubeflow_run} shows the cause",
        )
    times = [datetime.fromisoformat(record.started).timestamp()]
    if folder.is_dir():
        times += [changed for _, changed in _changes((folder, *folder.iterdir()))]
    if max((time for time in times if time <= latest), default=0.0) >= now - SILENT_SECS:
        return None
    return RunOutcome(
        "failed",
        reason=f"no sign of life from this run for {SILENT_SECS // _SECS_OF_A_DAY} days, and no step "
        "recorded its outcome",
    )


def newest_change(folder: Path) -> float:
    """Returns the time of the newest change in a run's folder, in seconds since 1970."""
    return max(changed for _, changed in _changes((folder, *folder.iterdir())))


def _changes(paths: Iterable[Path]) -> Iterator[tuple[Path, float]]:
    """Yields paths with the time of their change, without those that a step has just removed."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            yield path, path.stat().st_mtime
