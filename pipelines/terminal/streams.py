"""Standard output and error that take everything: what is closed, full or gone does not stop a command."""

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

_EXIT_FAILED = 1


class _Descriptor(io.FileIO):
    """A descriptor that keeps its first failure instead of raising it: the command goes on."""

    failure: OSError | None = None

    def write(self, content: Any) -> int:
        """Writes as much of the content as the system takes at once."""
        try:
            while (written := super().write(content)) is None:  # it does not block, and is busy
                select.select([], [self], [])
            return written
        except OSError as error:
            self.failure = self.failure or error
            return memoryview(content).nbytes


def open_text(descriptor: int, encoding: str) -> TextIO:
    r"""Returns a stream that takes everything, by lines.

    A character that the encoding does not have is written as Python's source has it, such as `\u2713`.

    Args:
      descriptor: Stays open when the stream is closed.
      encoding: Of the terminal.
    """
    buffer = io.BufferedWriter(_Descriptor(descriptor, "w", closefd=False))
    return io.TextIOWrapper(buffer, encoding, errors="backslashreplace", line_buffering=True)


def use_safe_streams() -> None:
    """Makes the streams of the process take everything; one that is closed leads to the null device."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest number that is free
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = open_text(1, getattr(sys.stdout, "encoding", "utf-8"))
    sys.stderr = open_text(2, getattr(sys.stderr, "encoding", "utf-8"))


def settled(code: int) -> int:
    """Returns the exit code of a command whose output is complete, or failed to be written.

    A reader that has gone, as in `| head`, is no failure.

    Args:
      code: Of the command.
    """
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    failure = getattr(raw, "failure", None)
    if failure is None or failure.errno == errno.EPIPE:
        return code
    print(f"Standard output cannot be written: {failure.strerror}.", file=sys.stderr)
    return code or _EXIT_FAILED
