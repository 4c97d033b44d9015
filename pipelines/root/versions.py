"""The versions below ROOT/serving, and below ROOT/withdrawn, where a rollback moves them."""

from pathlib import Path

from components.pusher.listing import list_versions, misleading_names
from components.pusher.provenance import read_provenance


def serving_versions(root: Path) -> list[int]:
    """Returns the versions that can be served, oldest first; the last one is served."""
    return list_versions(str(root / "serving"))


def withdrawn_versions(root: Path) -> list[int]:
    """Returns the versions that a rollback has withdrawn, oldest first."""
    return list_versions(str(root / "withdrawn"))


def serving_warnings(root: Path) -> list[str]:
    """Returns a warning if TensorFlow Serving would serve something else than `serving_versions` says."""
    served = ", ".join(map(str, serving_versions(root)[-1:])) or "none"
    return [
        f"{root / 'serving' / name} is no version: no folder named by a plain number that holds a "
        f"saved_model.pb. TensorFlow Serving would take it for the newest one (here: {served}). Remove it."
        for name in misleading_names(str(root / "serving"))
    ]


def version_state(root: Path, version: str | None) -> str | None:
    """Returns the state of a version: `serving`, `kept` for a rollback, `withdrawn`, or `removed`.

    Args:
      root: Root folder of the pipeline.
      version: Version that a run has pushed; None without one.
    """
    if version is None:
        return None
    served = [str(number) for number in serving_versions(root)]
    if version in served:
        return "serving" if version == served[-1] else "kept"
    return "withdrawn" if version in map(str, withdrawn_versions(root)) else "removed"


def version_pushed_by(root: Path, run_id: str) -> int | None:
    """Returns the newest version that a run has pushed, served or withdrawn; None without one.

    The versions themselves are read: a version exists before its run can record it.
    """
    pushed = [
        version
        for folder in (root / "serving", root / "withdrawn")
        for version in list_versions(str(folder))
        if (provenance := read_provenance(str(folder), version)) is not None
        and provenance.pipeline_run_id == run_id
    ]
    return max(pushed, default=None)
