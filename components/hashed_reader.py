"""Hashes a file while something else reads it."""

import hashlib
import io
from typing import IO


class HashedReader(io.RawIOBase):
    """Passes on the bytes of a stream, which it does not close, and computes their SHA-256."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes read so far, in hexadecimal digits."""
        return self._digest.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]  # a writable buffer
        content = self._stream.read(len(buffer))
        self._digest.update(content)
        buffer[: len(content)] = content
        return len(content)
