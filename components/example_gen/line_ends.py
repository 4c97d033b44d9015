"""Pieces of a CSV for pyarrow."""

from typing import BinaryIO


class WholeLineEnds:
    """Stream that pyarrow reads, of which no piece ends between a carriage return and a line feed.

    pyarrow drops a line feed at the beginning of a piece after such an end, even within quotes.

    Args:
      stream: Stream to read from; it stays open.
    """

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held = b""

    def read(self, size: int) -> bytes:
        """Returns the next bytes; none at the end."""
        content = self._held + self._stream.read(size - len(self._held))
        is_open = len(content) > 1 and content.endswith(b"\r")
        self._held = content[-1:] if is_open else b""
        return content[:-1] if is_open else content

    def close(self) -> None:
        """Leaves the stream to its owner."""
