"""Small files that survive a crash at any moment: a reader sees the old content or the new one."""

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import BadInputError


def write_json(file: Path, fields: Mapping[str, Any]) -> None:
    """Replaces a file; when this returns, the new content survives a power cut."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.uname().nodename}-{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8") as stream:
        json.dump(fields, stream, indent=1)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)
    sync_folder(file.parent)


def replace_file(file: Path, content: bytes) -> None:
    """Writes a file that a reader sees as a whole; where a link, a device or a pipe leads is written itself.

    Raises:
      OSError: It cannot be written; the old content is there still.
    """
    if file.is_symlink() or (file.exists() and not file.is_file()):
        file.write_bytes(content)
        return
    partial = file.with_name(f".{file.name}.{os.uname().nodename}-{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise OSError(error.errno, error.strerror, str(file)) from error


def remove(file: Path) -> None:
    """Removes a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
        sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Has the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_json(file: Path) -> dict[str, Any]:
    """Returns the content of a file.

    Raises:
      FileNotFoundError: There is none.
      BadInputError: It was damaged, or edited by hand into something else.
    """
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise BadInputError(f"{file} cannot be read: {error}. Mend it, or remove it.") from error
    if not isinstance(fields, dict):
        raise BadInputError(f"{file} holds no JSON object. Mend it, or remove it.")
    return fields
