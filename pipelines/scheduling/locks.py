"""Locks of the only scheduler in a root, and of the run that it has started."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from components.file_systems import lock
from pipelines.errors import BadInputError

_SCHEDULER = ".scheduler.lock"
_RUN = ".run.lock"


class SchedulerBusyError(BadInputError):
    """Another scheduler works in a root."""


@contextmanager
def scheduler_lock(folder: Path, doing: str) -> Iterator[None]:
    """Holds the lock of the root's only scheduler; the system releases it when the process ends in any way.

    Args:
      folder: Folder of the root's schedules.
      doing: Activity of this process, shown to others that are refused.

    Raises:
      SchedulerBusyError: Another scheduler holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _SCHEDULER).open("a+", encoding="utf-8") as stream:
        try:
            lock(stream, stream.name, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise SchedulerBusyError(
                f"Another scheduler works in {folder.parent}: {stream.read().strip() or 'not known which'}. "
                "One does all schedules of a root; stop it first if this one is to take its place."
            ) from error
        stream.truncate(0)
        stream.write(f"{doing}, process {os.getpid()} on {os.uname().nodename}")
        stream.flush()
        yield


def is_scheduled(folder: Path) -> bool:
    """Returns whether a scheduler works in a root."""
    return _is_held(folder / _SCHEDULER)


def take_run_lock(folder: Path) -> int | None:
    """Returns a descriptor that a run inherits, and that holds the lock as long as the run lives.

    The scheduler closes its own copy. When the scheduler is killed, its run continues and keeps the lock,
    which the next scheduler notices.

    Args:
      folder: Folder of the root's schedules.

    Returns:
      Descriptor of the lock; None while another run holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / _RUN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        lock(descriptor, folder / _RUN, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_run_going_on(folder: Path) -> bool:
    """Returns whether a run that a scheduler has started is alive, even if the scheduler is gone."""
    return _is_held(folder / _RUN)


def _is_held(file: Path) -> bool:
    try:
        with file.open("r", encoding="utf-8") as stream:
            lock(stream, file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
