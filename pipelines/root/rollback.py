"""Going back to an earlier version, or to a withdrawn one.

TensorFlow Serving serves the version with the highest number. A rollback therefore moves the higher
versions out of its sight, to ROOT/withdrawn, and `--to` brings them back.

Without `--to`, a rollback that is repeated after it was killed would go back two versions. It therefore
records its plan first, and removes that record when its caller has reported the result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from components.file_systems import sync
from pipelines.atomic_files import read_model, remove, write_json
from pipelines.errors import BadInputError
from pipelines.root import Root

_INTENT = ".rollback.json"


@dataclass(frozen=True)
class Rollback:
    before: int | None  # Version that was served before
    to: int  # Version that is served now
    was_interrupted: bool = False  # True if it has completed an earlier rollback that was killed

    def __str__(self) -> str:
        if self.was_interrupted:
            return (
                f"rolled back from {self.before} to {self.to}, which completes an interrupted rollback. "
                "Repeat the command to go back one version further"
            )
        if self.before == self.to:
            return f"{self.to} is already live; nothing was changed"
        return f"rolled back from {'none' if self.before is None else self.before} to {self.to}"


def rollback(root: Root, to: int | None = None, say: Callable[[Rollback], None] = lambda done: None) -> int:
    """Makes an earlier (or a withdrawn) version the served one, and returns it.

    `to`: version to serve; None means the version before the present one.
    """
    if not any(folder.is_dir() for folder in (root.serving, root.withdrawn)):
        raise _no_version(root, to)  # before the root would be created
    with root.lock.exclusively("rollback"):
        done = (_interrupted(root) if to is None else None) or _planned(root, to)
        if to is None:
            write_json(root.path / _INTENT, {"from": done.before, "to": done.to})
        else:  # idempotent, however often it is repeated
            remove(root.path / _INTENT)
        _move(root, done.to)
        say(done)
        remove(root.path / _INTENT)
    return done.to


def _planned(root: Root, to: int | None) -> Rollback:
    served, withdrawn = root.versions.served(), root.versions.withdrawn()
    if (to is None and len(served) < 2) or (to is not None and to not in (*served, *withdrawn)):
        raise _no_version(root, to)
    return Rollback(served[-1] if served else None, served[-2] if to is None else to)


def _interrupted(root: Root) -> Rollback | None:
    """Returns the rollback that was killed, if the served version has not changed since then."""
    try:
        fields = read_model(root.path / _INTENT, dict[str, int])
        before, to = fields["from"], fields["to"]
    except (FileNotFoundError, BadInputError, LookupError):
        return None
    served = root.versions.served()
    if to in served and served[-1] in (before, to):
        return Rollback(before, to, was_interrupted=True)
    return None


def _move(root: Root, to: int) -> None:
    serving, withdrawn = root.serving, root.withdrawn
    served = root.versions.served()
    if to not in served:
        _make(serving)
        (withdrawn / str(to)).rename(serving / str(to))
    # In ascending order, so that the present version is served until the last move.
    for version in (version for version in served if version > to):
        _make(withdrawn)
        (serving / str(version)).rename(withdrawn / str(version))
    for folder in (serving, withdrawn):
        if folder.is_dir():
            sync(folder)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir()
        sync(folder.parent)


def _no_version(root: Root, to: int | None) -> BadInputError:
    served, withdrawn = _listed(root.versions.served()), _listed(root.versions.withdrawn())
    if to is None:
        return BadInputError(f"There is no earlier version to go back to in {root.serving}: it has {served}.")
    return BadInputError(f"There is no version {to} in {root}. Served: {served}; withdrawn: {withdrawn}.")


def _listed(versions: list[int]) -> str:
    return ", ".join(map(str, versions)) or "none"
