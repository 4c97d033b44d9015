"""The lock of a root, which allows one run at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pipelines.errors import BadInputError

LOCAL_KUBEFLOW = ".kubeflow_local.lock"
"""Held by `run --runner kubeflow --local`, whose steps hold the lock of the root one after another."""

_NAME = ".lock"
_POLL_SECS = 0.5


class RootBusyError(BadInputError):
    """Another process holds the lock of a root."""


@contextmanager
def locked(root: Path, wait_secs: float = 0, holder: str = "", name: str = _NAME) -> Iterator[None]:
    """Holds the lock of a root; the system releases it when the process ends in any way.

    Args:
      root: Root folder of the pipeline.
      wait_secs: Time to wait for another process that holds it.
      holder: Name of the holder, shown to processes that wait. Default: the id of this process.
      name: File name of the lock. Default: the one that every writer to the root holds.

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
    """Holds the lock of a root while no run is active there, here or as `--runner kubeflow --local`.

    Args:
      root: Root folder of the pipeline.
      holder: Name of the holder, shown to processes that wait. Default: the id of this process.

    Raises:
      RootBusyError: A run is active, or another command changes the root.
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
    """Returns whether a run is active in a root."""
    try:
        check_free(root)
    except RootBusyError:
        return True
    return False


def check_free(root: Path) -> None:
    """Checks that no run is active in a root, here or as `--runner kubeflow --local`.

    Raises:
      RootBusyError: A run is active.
    """
    for name in (_NAME, LOCAL_KUBEFLOW):
        check_unlocked(root, name)


def check_unlocked(root: Path, name: str = _NAME) -> None:
    """Checks that no other process holds a lock of a root, without acquiring or creating it.

    Args:
      root: Root folder of the pipeline.
      name: File name of the lock. Default: the one that every writer to the root holds.

    Raises:
      RootBusyError: Another process holds it.
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
