"""Schedules of format 1, which kept the outcome of each tick in files of its own. Now the runs tell it."""

import contextlib
import shutil
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, read_model, remove
from pipelines.errors import BadInputError

FORMER_FORMAT = 1


def in_new_format(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the fields of a schedule of format 1 in the present format: ticks that are done are not due.

    Args:
      fields: Fields of its file.
      folder: Folder of its state.
    """
    ticks = [tick for tick in _ticks(folder) if tick.get("state") in ("done", "skipped")]
    changed = {name: value for name, value in fields.items() if name != "notify"}
    if not fields.get("on_new_span"):
        times = [str(fields.get("since", "")), *(str(tick.get("due", "")) for tick in ticks)]
        return {**changed, "since": max(times)}
    try:
        known = read_model(folder / "spans.json", dict[str, list[str] | None]).get("known")
    except (FileNotFoundError, BadInputError):
        known = None
    if known is None:
        return {**changed, "passed_spans": None}
    keys = (str(tick.get("key")) for tick in ticks)
    return {**changed, "passed_spans": sorted({*known, *keys})}


def remove_former_state(folder: Path) -> None:
    """Removes what format 1 kept of the ticks.

    Args:
      folder: Folder of a schedule's state.
    """
    for name in ("ticks", "output", "backfills"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("totals.json", "state.json", "spans.json"):
        with contextlib.suppress(
            OSError
        ):  # a folder in its place, or a file in the place of `folder`
            remove(folder / name)


def _ticks(folder: Path) -> list[dict[str, Any]]:
    ticks = []
    for file in sorted((folder / "ticks").glob("*.json")):
        with contextlib.suppress(BadInputError, FileNotFoundError):
            ticks.append(read_json(file))
    return ticks
