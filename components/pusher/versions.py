"""A directory of model versions: `base_directory/<version>/`, as TF Serving reads it."""

import os
import uuid
from collections.abc import Iterator

from tfx.dsl.io import fileio
from tfx.utils import io_utils

from components.file_systems import copy_tree, remove_tree, sync
from components.interruption import interruption
from components.pusher.listing import SAVED_MODEL_FILES, list_versions, used_numbers
from components.pusher.provenance import Provenance, write_provenance

# Model servers only look at names that are numbers.
_STAGING_PREFIX = ".pushing-"
_REMOVAL_PREFIX = ".removing-"
_SAVED_MODEL = SAVED_MODEL_FILES[0]

WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
"""File in a version with requests that TF Serving makes before it serves it."""


def push_version(
    model_path: str,
    base_directory: str,
    now_secs: float,
    provenance: Provenance | None = None,
    newer_than: int = 0,
    warmup: str | None = None,
) -> int:
    """Copies a model to a new version: `now_secs`, or higher than any in the directory and `newer_than`.

    On a file system the version appears in one step, by a rename. An object store (`gs://`) has no
    rename; there `saved_model.pb` is copied last, since model servers wait for it.
    """
    if "://" in base_directory:
        fileio.makedirs(base_directory)
        version = next(_candidates(base_directory, now_secs, newer_than))
        destination = os.path.join(base_directory, str(version))
        io_utils.copy_dir(model_path, destination, deny_regex_patterns=[r"saved_model\.pb$"])
        _add_warmup(warmup, destination)
        if provenance is not None:
            write_provenance(provenance, destination, base_directory)
        saved_model = os.path.join(model_path, _SAVED_MODEL)
        interruption.check()
        if fileio.exists(saved_model):
            io_utils.copy_file(saved_model, os.path.join(destination, _SAVED_MODEL))
        return version

    staging = os.path.join(base_directory, f"{_STAGING_PREFIX}{uuid.uuid4().hex}")
    os.makedirs(base_directory, exist_ok=True)
    try:
        if "://" in model_path:
            io_utils.copy_dir(model_path, staging)
        else:
            copy_tree(model_path, staging)
        _add_warmup(warmup, staging)
        if provenance is not None:
            write_provenance(provenance, staging, base_directory)
        for parent, _, names in os.walk(staging):  # or a power cut after the rename leaves empty files
            for name in names:
                sync(os.path.join(parent, name))
            sync(parent)
        for version in _candidates(base_directory, now_secs, newer_than):
            interruption.check()
            try:
                os.rename(staging, os.path.join(base_directory, str(version)))
            except OSError:
                if not os.path.exists(os.path.join(base_directory, str(version))):
                    raise
                continue  # Another push took this version since we looked.
            sync(base_directory)
            return version
    finally:
        if fileio.exists(staging):
            remove_tree(staging)
    raise AssertionError("unreachable: there is always a next version")


def prune_versions(base_directory: str, keep: int) -> list[int]:
    """Removes all but the `keep` newest versions, and returns those that it removed.

    A version disappears in one step, before its files are deleted.
    """
    removed = list_versions(base_directory)[:-keep]
    for version in removed:
        directory = os.path.join(base_directory, str(version))
        if "://" not in base_directory:
            doomed = os.path.join(base_directory, f"{_REMOVAL_PREFIX}{version}-{uuid.uuid4().hex}")
            os.rename(directory, doomed)
            directory = doomed
        remove_tree(directory)
    return removed


def _add_warmup(warmup: str | None, directory: str) -> None:
    destination = os.path.join(directory, WARMUP_FILE)
    if warmup is not None and not fileio.exists(destination):
        if "://" not in destination:
            os.makedirs(os.path.dirname(destination), exist_ok=True)
        io_utils.copy_file(warmup, destination)


def _candidates(base_directory: str, now_secs: float, newer_than: int) -> Iterator[int]:
    """Yields versions to try, the first one above all that exist."""
    taken = (newer_than, *used_numbers(base_directory))
    version = max(int(now_secs), *(v + 1 for v in taken))
    while True:
        yield version
        version += 1
