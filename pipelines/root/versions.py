"""The versions below ROOT/serving, and going back to an earlier one.

TensorFlow Serving serves the version with the highest number. Going back therefore takes the higher
ones out of its sight; they are kept in ROOT/withdrawn, and `--to` brings them back.
"""

from pathlib import Path

from components.pusher.provenance import read_provenance
from pipelines.errors import BadInputError


def serving_versions(root: Path) -> list[int]:
    """Returns the versions that can be served, oldest first; the last one is being served."""
    return _versions(root / "serving")


def withdrawn_versions(root: Path) -> list[int]:
    """Returns the versions that a rollback has taken out, oldest first."""
    return _versions(root / "withdrawn")


def version_state(root: Path, version: str | None) -> str | None:
    """Returns where a version is: `serving`, `kept` to go back to, `withdrawn`, or `removed`.

    Args:
      root: Of the pipeline.
      version: That a run has pushed; None without one.
    """
    if version is None:
        return None
    served = [str(number) for number in serving_versions(root)]
    if version in served:
        return "serving" if version == served[-1] else "kept"
    return "withdrawn" if version in map(str, withdrawn_versions(root)) else "removed"


def version_pushed_by(root: Path, run_id: str) -> int | None:
    """Returns the newest version that a run has pushed, served or withdrawn; None without one.

    It is read from the versions themselves: a version is there before its run can record it.
    """
    pushed = [
        version
        for folder in (root / "serving", root / "withdrawn")
        for version in _versions(folder)
        if (provenance := read_provenance(str(folder), version)) is not None
        and provenance.pipeline_run_id == run_id
    ]
    return max(pushed, default=None)


def rollback(root: Path, to: int | None = None) -> int:
    """Makes an earlier (or a withdrawn) version the one that is served, and returns it.

    Args:
      root: Of the pipeline.
      to: The version; None means the one before the present one.

    Raises:
      BadInputError: There is no such version, or none to go back to.
    """
    served, withdrawn = serving_versions(root), withdrawn_versions(root)
    if to is None:
        if len(served) < 2:
            raise BadInputError(
                f"There is no earlier version to go back to in {root / 'serving'}: it has "
                f"{_listed(served)}."
            )
        to = served[-2]
    if to not in served and to not in withdrawn:
        raise BadInputError(
            f"There is no version {to} in {root}. Served: {_listed(served)}; "
            f"withdrawn: {_listed(withdrawn)}."
        )
    if to in withdrawn:
        (root / "withdrawn" / str(to)).rename(root / "serving" / str(to))
    # Upwards, so that the present version is served until the last move.
    for version in sorted(version for version in served if version > to):
        (root / "withdrawn").mkdir(exist_ok=True)
        (root / "serving" / str(version)).rename(root / "withdrawn" / str(version))
    return to


def _versions(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(item.name) for item in folder.iterdir() if item.name.isdigit())


def _listed(versions: list[int]) -> str:
    return ", ".join(map(str, versions)) or "none"
