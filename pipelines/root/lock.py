"""The lock of a root, which allows one run at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from components.file_systems import lock
from pipelines.errors import BadInputError

_POLL_SECS = 0.5


class RootBusyError(BadInputError):
    """Another process holds the lock of a root."""


class FileLock:
    """A lock on a file; the system releases it when the process ends in any way."""

    def __init__(self, file: Path):
        self._file = file

    @contextmanager
    def held(self, wait_secs: float = 0, holder: str = "") -> Iterator[None]:
        """Holds the lock; `holder` is its name for processes that wait."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if fault := self.fault():
            raise BadInputError(fault)
        try:
            opened = self._file.open("a+", encoding="utf-8")
        except FileNotFoundError as error:  # a link to nothing
            raise BadInputError(
                f"{self._file} cannot be used as a lock: {error.strerror}. Remove it."
            ) from error
        with opened as stream:
            try:
                _lock(stream, wait_secs)
            except BlockingIOError as error:
                raise self._busy(stream) from error
            stream.truncate(0)
            try:  # not buffered: on a full disk, closing the file would fail, too, without its name
                os.write(stream.fileno(), (holder or f"process {os.getpid()}").encode())
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self._file)) from error
            yield

    def check_free(self) -> None:
        """Checks that no other process holds the lock, without acquiring or creating it."""
        if self.fault():  # nobody can hold it; to open a pipe would wait for a writer
            return
        try:
            with self._file.open("r", encoding="utf-8") as stream:
                try:
                    lock(stream, self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise self._busy(stream) from error
        except FileNotFoundError:
            return

    def fault(self) -> str:
        """Returns the reason why the file cannot be a lock; empty if it can."""
        if self._file.exists() and not self._file.is_file():
            return f"{self._file} cannot be used as a lock: it is not a regular file. Remove it."
        return ""

    def is_held(self) -> bool:
        """Returns True if another process holds the lock."""
        try:
            self.check_free()
        except RootBusyError:
            return True
        return False

    def _busy(self, stream: TextIO) -> RootBusyError:
        stream.seek(0)
        return RootBusyError(
            f"Another run is in progress in {self._file.parent} "
            f"({stream.read().strip() or 'unknown process'}). Wait for it, stop it, or give another --root."
        )


class RootLock:
    """The two locks of a root.

    `local_kubeflow`: Lock held for a whole `run --runner kubeflow --local`; each of its steps takes the
    writing lock in turn.
    """

    def __init__(self, folder: Path):
        self.writing = FileLock(folder / ".lock")
        self.local_kubeflow = FileLock(folder / ".kubeflow_local.lock")

    @contextmanager
    def exclusively(self, holder: str = "") -> Iterator[None]:
        """Holds the lock while no run is active, here or as `--runner kubeflow --local`."""
        with self.writing.held(holder=holder):
            self.local_kubeflow.check_free()
            yield

    def check_free(self) -> None:
        """Checks that no run is active in the root, here or as `--runner kubeflow --local`."""
        self.writing.check_free()
        self.local_kubeflow.check_free()

    def is_held(self) -> bool:
        """Returns whether a run is active in the root."""
        return self.writing.is_held() or self.local_kubeflow.is_held()


def _lock(stream: TextIO, wait_secs: float) -> None:
    deadline = time.monotonic() + wait_secs
    while True:
        try:
            lock(stream, stream.name, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(min(_POLL_SECS, wait_secs))
