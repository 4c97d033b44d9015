"""Files that survive a crash at any moment: a reader sees either the old or the new content."""

import contextlib
import functools
import json
import logging
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from components.file_systems import copy_tree, remove_tree, sync
from pipelines.errors import BadInputError, DamagedFileError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")

MAX_SMALL_BYTES = 64 << 20
"""Largest configuration, schema or token file. Schemas of wide tables list the words of each column."""

_SUFFIX = ".partial"
_OLD_SECS = 86_400
"""Age from which a partial file of another machine is considered abandoned."""


def write(file: Path, content: str | bytes, private: bool = False) -> None:
    """Replaces a file; when this returns, the new content survives a power cut.

    A link, a device or a pipe is written to, not replaced, unless the file is private.

    `file`: file to replace; its folder is made.
    `content`: new content; text is written as UTF-8.
    """
    data = content.encode() if isinstance(content, str) else content
    file.parent.mkdir(parents=True, exist_ok=True)
    if not private and (file.is_symlink() or (file.exists() and not file.is_file())):
        file.write_bytes(data)
        return
    partial = partial_path(file)
    try:
        with partial.open("wb") as stream:
            if private:
                os.fchmod(stream.fileno(), 0o600)  # before anything is in it
            stream.write(data)
            stream.flush()
            sync(partial)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(file)) from error
    sync(file.parent)


def write_json(file: Path, fields: Mapping[str, Any], private: bool = False) -> None:
    """Replaces a JSON file, see `write`."""
    write(file, f"{json.dumps(fields, indent=1)}\n", private)


def write_uri(uri: str, content: str | bytes) -> None:
    """Replaces a file of any file system that TensorFlow knows; its folder has to exist."""
    import tensorflow as tf

    partial = f"{uri}{_SUFFIX}"
    with tf.io.gfile.GFile(partial, "w" if isinstance(content, str) else "wb") as stream:
        stream.write(content)
    tf.io.gfile.rename(partial, uri, overwrite=True)


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder unless the target exists; the target appears only when the copy is complete."""
    if target.is_dir():
        return
    partial = partial_path(target)
    shutil.rmtree(partial, ignore_errors=True)
    copy_tree(source, partial)
    partial.rename(target)


def left_over(folder: Path) -> Iterator[Path]:
    """Yields the partial files and folders whose writer has ended."""
    for path in sorted(folder.glob(f".*{_SUFFIX}")):
        node, _, number = path.name.removesuffix(_SUFFIX).rpartition(".")[2].rpartition("-")
        if node == os.uname().nodename and number.isdecimal():
            if not _is_alive(int(number)):
                yield path
        elif time.time() - path.stat().st_mtime > _OLD_SECS:
            yield path


def partial_path(path: Path) -> Path:
    thread = threading.get_ident()  # neither another thread nor another pod writes there
    return path.with_name(f".{path.name}-{thread}.{os.uname().nodename}-{os.getpid()}{_SUFFIX}")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process belongs to another user
        return True
    return True


def remove(file: Path) -> None:
    """Removes a file if it exists."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
        sync(file.parent)


def with_real_parent(path: Path) -> Path:
    """Returns a path without `..` and links, except that the file itself may be a link."""
    if path.name in ("", ".."):
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent), path.name)


def is_below(path: Path, folder: Path) -> bool:
    """Returns whether a file or a folder is inside another folder, once `..` and links are resolved."""
    return Path(os.path.realpath(folder)) in with_real_parent(path).parents


def remove_below(folder: Path, path: Path) -> None:
    """Removes a file, a link, or a folder with its content, if it exists.

    Nothing outside of the folder is removed, even if a root's files or databases name it.

    `folder`: folder that the path must be in, once `..` and links are resolved.
    """
    if not is_below(path, folder):
        raise BadInputError(
            f"{path} is not removed, because it leads to {with_real_parent(path)}, outside of {folder}. "
            "Correct the record or the link."
        )
    if path.is_dir():
        remove_tree(str(path))
    else:
        path.unlink(missing_ok=True)


def read_small(file: Path, what: str) -> bytes:
    """Returns the content of a file that a user named; a device such as /dev/zero would never end."""
    with file.open("rb") as stream:
        content = stream.read(MAX_SMALL_BYTES + 1)
    if len(content) > MAX_SMALL_BYTES:
        raise BadInputError(
            f"{file} holds more than {MAX_SMALL_BYTES >> 20} MB, too much for {what}. Check the path."
        )
    return content


def read_model(file: Path, form: type[T]) -> T:
    """Returns the content of a JSON file as a dataclass, `dict[str, str]` or another type, checked."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # reading a pipe or /dev/zero would never end
            raise ValueError("it is not a regular file")
        return checked(json.loads(file.read_text(encoding="utf-8")), form)
    except FileNotFoundError as error:
        if file.is_symlink():
            raise DamagedFileError(file, "it is a link to a file that does not exist") from error
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFileError(file, str(error)) from error


def read_json(file: Path) -> dict[str, Any]:
    """Returns the content of a JSON file that holds an object, see `read_model`."""
    return read_model(file, dict[str, Any])


def checked(values: object, form: type[T]) -> T:
    """Returns values from JSON as a type, see `read_model`; raises ValueError if they have another form."""
    from pydantic import ValidationError  # here since the tasks of a training do not need pydantic

    try:
        return cast(T, _adapter(cast(Any, form)).validate_python(values))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{where}: {problem['msg']}" if where else problem["msg"]) from error


@functools.cache
def _adapter(form: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(form)


@functools.cache  # a command reads a file several times, a scheduler every few seconds
def warn_once(message: str) -> None:
    """Logs a warning about a file, unless this process has done so before."""
    _LOGGER.warning("%s", message)
