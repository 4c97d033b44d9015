"""Counts the rows that are copies of other rows, by the hashes of their lines."""

from dataclasses import dataclass
from typing import Any

import numpy as np

_MAX_HASHES = 1 << 23  # 64 MB


@dataclass(frozen=True)
class RowCopies:
    """Rows that are equal, character by character; estimated for more than eight million rows."""

    num_copies: int = 0  # Number of rows without the first one of each set of equal rows
    num_pairs: int = 0  # Number of pairs of equal rows


class RowHashes:
    """Hashes the lines of files, which are read in blocks of any size.

    Of many rows, those with a hash that is divisible by a power of two are kept, so all copies of a row are.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._of_file: list[Any] = []
        self._rest = b""  # beginning of a line
        self._num_lines = 0  # of the file, header included
        self._stride = 1

    def update(self, block: bytes) -> None:
        """Adds the next bytes of a file; none at its end."""
        lines = (self._rest + block).split(b"\n")
        self._rest = lines.pop() if block else b""
        hashes = np.fromiter(map(hash, lines), np.int64, len(lines))
        hashes = hashes[(hashes != hash(b"")) & (hashes != hash(b"\r"))]  # without blank lines
        if not self._num_lines:
            self._num_lines, hashes = min(1, len(hashes)), hashes[1:]  # the header
        self._num_lines += len(hashes)
        self._of_file.append(hashes[hashes % self._stride == 0])

    def end_file(self, num_rows: int) -> None:
        """Ends a file; it is left out if its lines are not its rows, such as with line breaks in quotes."""
        self.update(b"")
        if self._num_lines == num_rows + 1:
            self._kept += self._of_file
        self._of_file, self._num_lines = [], 0
        while sum(map(len, self._kept)) > _MAX_HASHES:
            self._stride *= 2
            self._kept = [hashes[hashes % self._stride == 0] for hashes in self._kept]

    def count(self) -> RowCopies:
        """Returns the copies in all files."""
        counts = np.unique(np.concatenate([np.empty(0, np.int64), *self._kept]), return_counts=True)[1]
        num_pairs = int((counts * (counts - 1) // 2).sum())
        return RowCopies(int((counts - 1).sum()) * self._stride, num_pairs * self._stride)
