"""The lock of the only scheduler in a root."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pipelines.errors import BadInputError
from pipelines.root.lock import FileLock, RootBusyError

_SCHEDULER = ".scheduler.lock"


class SchedulerBusyError(BadInputError):
    """Another scheduler works in a root."""


@contextmanager
def scheduler_lock(folder: Path) -> Iterator[None]:
    """Holds the lock of the root's only scheduler; the system releases it when the process ends in any way.

    Raises:
      SchedulerBusyError: Another scheduler holds it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(FileLock(folder / _SCHEDULER).held())
        except RootBusyError as error:
            raise SchedulerBusyError(
                f"Another scheduler works in {folder.parent}. One does all schedules of a root; stop it "
                "first if this one is to take its place."
            ) from error
        yield


def is_scheduled(folder: Path) -> bool:
    """Returns whether a scheduler works in a root."""
    return FileLock(folder / _SCHEDULER).is_held()
