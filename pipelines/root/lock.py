"""One run at a time in a root."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pipelines.errors import BadInputError

LOCAL_KUBEFLOW = ".kubeflow_local.lock"
"""Held by `run --runner kubeflow --local`, whose steps hold the lock of the root one after the other."""

_NAME = ".lock"
_POLL_SECS = 0.5


class RootBusyError(BadInputError):
    """Another process holds the lock of a root."""


@contextmanager
def locked(root: Path, wait_secs: float = 0, holder: str = "", name: str = _NAME) -> Iterator[None]:
    """Holds the lock of a root; the system releases it when the process ends in any way.

    Args:
      root: Of the pipeline.
      wait_secs: How long to wait for another process that holds it.
      holder: Who holds it, for those who wait. Default: this process, by its number.
      name: Of the lock. Default: the one that whatever writes to the root holds.

    Raises:
      RootBusyError: Another process holds it.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / name).open("a+", encoding="utf-8") as stream:
        try:
            _lock(stream, wait_secs)
        except BlockingIOError as error:
            raise _busy(root, stream) from error
        stream.truncate(0)
        stream.write(holder or f"process {os.getpid()}")
        stream.flush()
        yield


@contextmanager
def exclusively(root: Path, holder: str = "") -> Iterator[None]:
    """Holds the lock of a root while no run is going on there, here or as `--runner kubeflow --local`.

    Args:
      root: Of the pipeline.
      holder: Who holds it, for those who wait. Default: this process, by its number.

    Raises:
      RootBusyError: A run is going on, or another command changes the root.
    """
    with locked(root, holder=holder):
        check_unlocked(root, LOCAL_KUBEFLOW)
        yield


def _lock(stream: TextIO, wait_secs: float) -> None:
    deadline = time.monotonic() + wait_secs
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(min(_POLL_SECS, wait_secs))


def is_locked(root: Path) -> bool:
    """Returns whether a run is going on in a root."""
    try:
        check_free(root)
    except RootBusyError:
        return True
    return False


def check_free(root: Path) -> None:
    """Checks that no run is going on in a root, here or as `--runner kubeflow --local`.

    Raises:
      RootBusyError: One is.
    """
    for name in (_NAME, LOCAL_KUBEFLOW):
        check_unlocked(root, name)


def check_unlocked(root: Path, name: str = _NAME) -> None:
    """Checks that no other process holds a lock of a root. It is neither taken nor made.

    Args:
      root: Of the pipeline.
      name: Of the lock. Default: the one that whatever writes to the root holds.

    Raises:
      RootBusyError: One holds it.
    """
    try:
        with (root / name).open("r", encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _busy(root, stream) from error
    except FileNotFoundError:
        return


def _busy(root: Path, stream: TextIO) -> RootBusyError:
    stream.seek(0)
    return RootBusyError(
        f"Another run is going on in {root} ({stream.read().strip() or 'not known which'}). "
        "Wait for it, stop it, or give another --root."
    )
