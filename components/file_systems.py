"""Directories and locks on file systems that lack what Linux's own have, and in which users keep links."""

import errno
import fcntl
import logging
import os
import shutil
import stat
from typing import IO, NoReturn

from components.errors import SettingError

_UNSUPPORTED = (errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)

_LOGGER = logging.getLogger(__name__)
_warned: set[tuple[int, str]] = set()


def remove_tree(directory: str) -> None:
    """Removes a directory with its content; a link is not followed, as it is by TensorFlow's `rmtree`."""
    if "://" in directory:
        from tfx.dsl.io import fileio

        fileio.rmtree(directory)
    elif os.path.islink(directory):
        os.unlink(directory)
    else:
        shutil.rmtree(directory)


def copy_tree(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copies the files of a local directory, with the permissions that the umask gives to new files.

    The permissions of the source may be too wide, as after a download by KFP's launcher, whose umask is
    0; TensorFlow's own copies have directories that a group cannot write to. Links are copied as their
    targets.
    """

    def stop(error: OSError) -> NoReturn:
        raise error

    for directory, _, names in os.walk(source, followlinks=True, onerror=stop):
        copy = os.path.normpath(os.path.join(target, os.path.relpath(directory, source)))
        os.makedirs(copy, exist_ok=True)
        for name in names:
            shutil.copyfile(os.path.join(directory, name), os.path.join(copy, name))


def relative_path(uri: str, directory: str) -> str:
    """Returns a path relative to a directory, which stays valid when both are moved together."""
    return uri if "://" in uri or "://" in directory else os.path.relpath(uri, directory)


def sync(path: str | os.PathLike[str]) -> None:
    """Makes the content of a file, or the names in a directory, survive a power cut.

    A file system without `fsync`, often for directories alone, causes one warning, as only a power cut
    can then do harm.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            if error.errno is not None:  # its message would be gone otherwise
                error.filename = os.fspath(path)
            raise
        status = os.fstat(descriptor)
        files = "directories" if stat.S_ISDIR(status.st_mode) else "files"
        if (status.st_dev, files) not in _warned:
            _warned.add((status.st_dev, files))
            _LOGGER.warning(
                "The file system of %s has no fsync for %s (%s): what was just written may be lost in a "
                "power cut. Keep it on another file system, such as a local disk, if that matters.",
                path,
                files,
                error.strerror,
            )
    finally:
        os.close(descriptor)


def lock(file: IO[str] | int, path: str | os.PathLike[str], operation: int) -> None:
    try:
        fcntl.flock(file, operation)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            error.filename = os.fspath(path)
            raise
        raise SettingError(
            f"{os.fspath(path)} cannot be locked (flock: {error.strerror}): its file system has no locks, "
            "which keep two runs from writing the same files. Use a folder on a local disk, or on NFS with "
            "its lock service."
        ) from error
