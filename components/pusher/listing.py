"""Lists a directory of model versions: `base_directory/<version>/`, each a complete SavedModel.

A local directory is read without TFX, which loads slowly.
"""

import os
import re

SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")

_LARGEST = 2**63 - 1


def list_versions(base_directory: str) -> list[int]:
    """Returns the versions that can be served, oldest first; empty if there is no directory.

    A version is a directory whose name is its number, without leading zeros, and which holds a SavedModel.
    """
    return sorted(number for name, number in _numbers(base_directory) if _is_version(base_directory, name))


def used_numbers(base_directory: str) -> list[int]:
    """Returns the numbers in use, oldest first: of versions, and of other files with a number as name."""
    return sorted(number for _, number in _numbers(base_directory) if number < _LARGEST)


def misleading_names(base_directory: str) -> list[str]:
    """Returns the names that TF Serving reads as its newest version, although they are not versions.

    Source: TF Serving's file system source. It accepts any integer as a name, including the name of a
    file or an empty directory, and `007`.
    """
    newest = max(list_versions(base_directory), default=0)
    return [
        name
        for name, number in _numbers(base_directory)
        if number >= newest and not _is_version(base_directory, name)
    ]


def _numbers(base_directory: str) -> list[tuple[str, int]]:
    """Returns the names that TF Serving reads as numbers, with their numbers, sorted by name."""
    names = sorted(name for name in _names(base_directory) if re.fullmatch(r"[0-9]{1,30}", name))
    return [(name, int(name)) for name in names if int(name) <= _LARGEST]


def _is_version(base_directory: str, name: str) -> bool:
    folder = os.path.join(base_directory, name)
    return name == str(int(name)) and any(_is_file(os.path.join(folder, file)) for file in SAVED_MODEL_FILES)


def _names(directory: str) -> list[str]:
    if "://" not in directory:
        return os.listdir(directory) if os.path.isdir(directory) else []
    from tfx.dsl.io import fileio

    names = fileio.listdir(directory) if fileio.isdir(directory) else []
    return [name.rstrip("/") for name in names]


def _is_file(path: str) -> bool:
    if "://" not in path:
        return os.path.isfile(path)
    from tfx.dsl.io import fileio

    return bool(fileio.exists(path))
