"""Standard output and error whose failures do not stop a command: closed, full or gone streams."""

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

_EXIT_FAILED = 1


class _Descriptor(io.FileIO):
    """A descriptor that records its first failure instead of raising it, so that the command continues."""

    failure: OSError | None = None

    def write(self, content: Any) -> int:
        """Writes as much of the content as the system accepts."""
        try:
            while (written := super().write(content)) is None:  # non-blocking, and busy
                select.select([], [self], [])
            return written
        except OSError as error:
            self.failure = self.failure or error
            return memoryview(content).nbytes


def open_text(descriptor: int, encoding: str) -> TextIO:
    r"""Returns a line-buffered stream that accepts every character.

    A character that the encoding lacks is written as an escape sequence, such as `\u2713`.
    """
    buffer = io.BufferedWriter(_Descriptor(descriptor, "w", closefd=False))
    return io.TextIOWrapper(buffer, encoding, errors="backslashreplace", line_buffering=True)


def use_safe_streams() -> None:
    """Makes the process's streams accept everything; a closed one is replaced by the null device."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free number
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = open_text(1, getattr(sys.stdout, "encoding", "utf-8"))
    sys.stderr = open_text(2, getattr(sys.stderr, "encoding", "utf-8"))


def checked_exit_code(code: int) -> int:
    """Returns the exit code of a command, after checking that its output could be written.

    A reader that has ended, as in `| head`, is not a failure.
    """
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failure = getattr(raw, "failure", None)
    if failure is None or failure.errno == errno.EPIPE:
        return code
    print(f"Standard output cannot be written: {failure.strerror}.", file=sys.stderr)
    return code or _EXIT_FAILED
