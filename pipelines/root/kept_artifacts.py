"""Folders of a root for artifacts of pushed runs."""

from pathlib import Path

_FOLDER = "kept"


def kept_folder(root: Path, run_id: str, name: str) -> Path:
    """Returns the folder for an artifact of a run: `model` or `statistics`."""
    return root / _FOLDER / run_id / name
