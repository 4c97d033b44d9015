"""Schedules of format 1, which kept the outcome of each tick in a file; now the records of runs show it."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_model, remove
from pipelines.errors import BadInputError
from pipelines.root.records import Time

FORMER_FORMAT = 1
_FOLDERS = ("ticks", "output", "backfills")
_FILES = ("totals.json", "state.json", "spans.json")


@dataclass(frozen=True)
class _FormerTick:
    key: str
    due: Time
    state: str


@dataclass(frozen=True)
class _FormerSpans:
    known: tuple[str, ...] | None = None


def in_new_format(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the fields of a schedule of format 1 in the present format: ticks that are done are not due."""
    done, known = [], None
    for file in sorted((folder / "ticks").glob("*.json")):
        with contextlib.suppress(BadInputError, FileNotFoundError):
            if (tick := read_model(file, _FormerTick)).state in ("done", "skipped"):
                done.append(tick)
    changed = {name: value for name, value in fields.items() if name != "notify"}
    if not fields.get("on_new_span"):
        times = (str(fields.get("since", "")), *(tick.due for tick in done))
        return {**changed, "since": max(times)}
    with contextlib.suppress(BadInputError, FileNotFoundError):
        known = read_model(folder / "spans.json", _FormerSpans).known
    passed = None if known is None else sorted({*known, *(tick.key for tick in done)})
    return {**changed, "passed_spans": passed}


def has_former_state(folder: Path) -> bool:
    """Returns whether there is anything that format 1 kept of the ticks."""
    return any((folder / name).exists() for name in (*_FOLDERS, *_FILES))


def remove_former_state(folder: Path) -> None:
    """Removes what format 1 kept of the ticks."""
    for path in (folder / name for name in (*_FOLDERS, *_FILES)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)  # of a pipe, it would wait for a writer
        else:
            with contextlib.suppress(OSError):
                remove(path)
