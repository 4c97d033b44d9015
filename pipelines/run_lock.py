"""One run at a time in a root."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import BadInputError

_NAME = ".lock"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Holds the lock of a root; the system releases it when the process ends in any way.

    Raises:
      BadInputError: Another process holds it.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / _NAME).open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            raise BadInputError(
                f"Another run is going on in {root} (process {stream.read().strip() or 'unknown'}). "
                "Wait for it, stop it, or give another --root."
            ) from error
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        yield


def is_locked(root: Path) -> bool:
    """Returns whether a run is going on in a root."""
    try:
        with (root / _NAME).open("r", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
