"""Origin of a pushed version: a small file inside the version, so that both appear together."""

import json
import os
from dataclasses import dataclass

from components.errors import SettingError

# `assets.extra` is SavedModel's place for files that are no part of the graph.
PROVENANCE_FILE = os.path.join("assets.extra", "push.json")


@dataclass(frozen=True)
class Provenance:
    """Origin of a version."""

    pipeline_run_id: str  # Pipeline run that pushed it; empty outside of a run
    model_uri: str  # Uri of the `Model` artifact that was pushed
    model_fingerprint: str = ""  # Hash of all inputs of the model; empty if it is not known


def write_provenance(provenance: Provenance, directory: str, base_directory: str) -> None:
    """Writes the origin of a version.

    The path of the model is relative to the base directory, so that both can be moved together.
    """
    from tfx.utils import io_utils

    fields = {
        "pipeline_run_id": provenance.pipeline_run_id,
        "model": _relative(provenance.model_uri, base_directory),
        "model_fingerprint": provenance.model_fingerprint,
    }
    io_utils.write_string_file(os.path.join(directory, PROVENANCE_FILE), json.dumps(fields) + "\n")


def read_provenance(base_directory: str, version: int) -> Provenance | None:
    """Returns the origin of a version; None if it was not pushed by our Pusher."""
    path = os.path.join(base_directory, str(version), PROVENANCE_FILE)
    text = _read(path)
    if text is None:
        return None
    try:
        fields = json.loads(text)
        run_id, model = str(fields["pipeline_run_id"]), str(fields["model"])
        fingerprint = str(fields.get("model_fingerprint", ""))
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise SettingError(
            f"{path} is not what the Pusher wrote ({type(error).__name__}: {error}). Restore it; or remove "
            "it, and the version counts as pushed by another program."
        ) from error
    if "://" not in model:
        model = os.path.normpath(os.path.join(base_directory, model))
    return Provenance(run_id, model, fingerprint)


def _read(path: str) -> str | None:
    """Returns a text, None if there is none. Local files are read without TFX, which loads slowly."""
    if "://" not in path:
        try:
            with open(path, encoding="utf-8") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
    from tfx.dsl.io import fileio
    from tfx.utils import io_utils

    return io_utils.read_string_file(path) if fileio.exists(path) else None


def _relative(uri: str, base_directory: str) -> str:
    if "://" in uri or "://" in base_directory:
        return uri
    return os.path.relpath(uri, base_directory)
