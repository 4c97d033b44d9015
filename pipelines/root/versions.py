"""The versions below ROOT/serving, and below ROOT/withdrawn, where a rollback moves them."""

from collections.abc import Iterator
from pathlib import Path

from components.pusher.listing import list_versions, misleading_names
from components.pusher.provenance import Provenance, read_provenance


class Versions:
    """The pushed versions of a root, served and withdrawn; read from disk at each call."""

    def __init__(self, serving: Path, withdrawn: Path):
        self._serving = serving
        self._withdrawn = withdrawn

    def served(self) -> list[int]:
        """Returns the versions that can be served, oldest first; the last one is served."""
        return list_versions(str(self._serving))

    def withdrawn(self) -> list[int]:
        """Returns the versions that a rollback has withdrawn, oldest first."""
        return list_versions(str(self._withdrawn))

    def folder(self, version: int) -> Path:
        """Returns the folder of a version that can be served."""
        return self._serving / str(version)

    def serving(self) -> str | None:
        return self._last(self.served())

    def served_before(self, run_id: str) -> str | None:
        """Returns the version served before a run, which may have been killed after its push."""
        own = self.version_of_run(run_id)
        return self._last([version for version in self.served() if version != own])

    def warnings(self) -> list[str]:
        """Returns a warning if TensorFlow Serving would serve something else than `serving` says."""
        return [
            f"{self._serving / name} is not a version, which is a folder named by a plain number that holds "
            "a saved_model.pb. TensorFlow Serving would serve it as the newest version (here: "
            f"{self.serving() or 'none'}). Remove it."
            for name in misleading_names(str(self._serving))
        ]

    def state(self, version: str | None) -> str | None:
        """Returns the state of a version: `serving`, `kept` for a rollback, `withdrawn`, or `removed`."""
        if version is None:
            return None
        served = [str(number) for number in self.served()]
        if version in served:
            return "serving" if version == served[-1] else "kept"
        return "withdrawn" if version in map(str, self.withdrawn()) else "removed"

    def origin(self) -> Provenance | None:
        """Returns the origin of the served version; None if there is no such version, or if it is unknown."""
        served = self.served()
        return read_provenance(str(self._serving), served[-1]) if served else None

    def version_origin(self, version: str) -> Provenance | None:
        """Returns the origin of a version that can be served; None if it is unknown."""
        return read_provenance(str(self._serving), int(version))

    def origins(self) -> Iterator[tuple[int, Provenance]]:
        """Yields all versions whose origin is known, served or withdrawn."""
        for folder in (self._serving, self._withdrawn):
            for version in list_versions(str(folder)):
                if (origin := read_provenance(str(folder), version)) is not None:
                    yield version, origin

    def version_of_run(self, run_id: str) -> int | None:
        """Returns the newest version that a run has pushed, served or withdrawn, or None.

        The versions themselves are read: a version exists before its run can record it.
        """
        pushed = (version for version, origin in self.origins() if origin.pipeline_run_id == run_id)
        return max(pushed, default=None)

    @staticmethod
    def _last(versions: list[int]) -> str | None:
        return str(versions[-1]) if versions else None
