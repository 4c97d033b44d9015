"""Origin of a pushed version: a small file inside the version, so that both appear together."""

import json
import os
from dataclasses import dataclass

from components.errors import SettingError
from components.file_systems import relative_path

# `assets.extra` is SavedModel's place for files outside of the graph.
PROVENANCE_FILE = os.path.join("assets.extra", "push.json")


@dataclass(frozen=True)
class Provenance:
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
        "model": relative_path(provenance.model_uri, base_directory),
        "model_fingerprint": provenance.model_fingerprint,
    }
    io_utils.write_string_file(os.path.join(directory, PROVENANCE_FILE), json.dumps(fields) + "\n")


def read_provenance(base_directory: str, version: int) -> Provenance | None:
    """Returns the origin of a version; None if it was not pushed by our Pusher."""
    path = os.path.join(base_directory, str(version), PROVENANCE_FILE)
    content = _read(path)
    if content is None:
        return None
    try:
        fields = json.loads(content)
        run_id, model = str(fields["pipeline_run_id"]), str(fields["model"])
        fingerprint = str(fields.get("model_fingerprint", ""))
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise SettingError(
            f"{path} is not what the Pusher wrote ({type(error).__name__}: {error}). Restore it; or remove "
            "it, so that the version counts as pushed by another program."
        ) from error
    if "://" not in model:
        model = os.path.normpath(os.path.join(base_directory, model))
    return Provenance(run_id, model, fingerprint)


def _read(path: str) -> str | None:
    """Returns the content of a file, if it exists. Local files are read without TFX, which loads slowly."""
    if "://" not in path:
        try:
            with open(path, encoding="utf-8") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
    from tfx.dsl.io import fileio
    from tfx.utils import io_utils

    return io_utils.read_string_file(path) if fileio.exists(path) else None
