"""Where a root keeps artifacts of a run whose model was pushed."""

from pathlib import Path

_FOLDER = "kept"


def kept_folder(root: Path, run_id: str, name: str) -> Path:
    """Returns where an artifact of a run is kept: `model`, or `statistics`."""
    return root / _FOLDER / run_id / name
