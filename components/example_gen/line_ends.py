"""Pieces of a CSV for pyarrow."""

from typing import BinaryIO

import pyarrow as pa

_WINDOW_BYTES = 32 << 10
_MAX_MORE_FIELDS = 200_000


class WholeLineEnds:
    """Stream that pyarrow reads, of which no piece ends between a carriage return and a line feed.

    pyarrow drops a line feed at the beginning of a piece after such an end, even within quotes. And it ends
    the process (18.1: a segmentation fault) at a row with hundreds of thousands of fields too many: `read`
    raises pyarrow.ArrowInvalid at such a line.
    """

    closed = False

    def __init__(self, stream: BinaryIO, num_columns: int, delimiter: str = ",") -> None:
        self._stream = stream
        self._delimiter = delimiter.encode()
        self._max_fields = num_columns + _MAX_MORE_FIELDS
        self._num_fields = 0  # of a line that fills the windows up to here
        self._held = b""

    def read(self, size: int) -> bytes:
        content = self._held + self._stream.read(size - len(self._held))
        for start in range(0, len(content), _WINDOW_BYTES):
            window = start, start + _WINDOW_BYTES
            if content.find(b"\n", *window) >= 0 or content.find(b"\r", *window) >= 0:
                self._num_fields = 0
                continue
            self._num_fields += content.count(self._delimiter, *window)
            if self._num_fields > self._max_fields:
                raise pa.ArrowInvalid(f"a line has more than {self._max_fields} fields")
        is_open = len(content) > 1 and content.endswith(b"\r")
        self._held = content[-1:] if is_open else b""
        return content[:-1] if is_open else content

    def close(self) -> None:
        """Leaves the stream to its owner."""
