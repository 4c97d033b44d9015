"""Versions as a Pusher leaves them, with an empty SavedModel."""

from pathlib import Path

from components.pusher.provenance import Provenance, write_provenance


def write_version(provenance: Provenance, directory: str, base_directory: str) -> None:
    """Writes a version; the arguments are those of `write_provenance`."""
    write_provenance(provenance, directory, base_directory)
    add_model(Path(directory))


def add_model(directory: Path) -> None:
    """Writes an empty SavedModel."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "saved_model.pb").touch()


def serve_version(serving: Path, version: object, run_id: str, model: str = "m") -> None:
    """Writes a version that a run has pushed."""
    write_version(Provenance(run_id, model), str(serving / str(version)), str(serving))
