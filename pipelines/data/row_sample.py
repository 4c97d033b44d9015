"""A sample of the rows, spread over the files, taken while they are read."""

from typing import Any

import numpy as np
import pyarrow as pa

MAX_ROWS = 50_000
_MAX_CELLS = 20_000_000  # of a wide table: about 1 GB
_MAX_BYTES = 1 << 30


class RowSample:
    """Each n-th row of all files, where n is the least power of two that makes the sample small enough.

    At most 50,000 rows are kept, fewer of a table with many columns or long texts; of a smaller table, all
    rows.
    """

    def __init__(self, num_columns: int):
        self._max_rows = min(MAX_ROWS, max(1, _MAX_CELLS // num_columns))
        self._stride = 1
        self._parts: list[tuple[Any, Any]] = []  # numbers of the rows, and the rows
        self._num_rows = self._num_bytes = self._row = 0

    def add(self, batch: Any) -> None:
        """Adds the next rows (record batch), of the same file or of the next one."""
        numbers = np.arange(-self._row % self._stride, len(batch), self._stride)
        self._row += len(batch)
        self._keep(numbers + self._row - len(batch), self._taken(batch, numbers))
        while self._num_rows > (self._max_rows if self._num_bytes <= _MAX_BYTES else 1):
            self._stride *= 2
            parts, self._parts = self._parts, []
            self._num_rows = self._num_bytes = 0
            for numbers, rows in parts:
                kept = np.flatnonzero(numbers % self._stride == 0)
                self._keep(numbers[kept], self._taken(rows, kept))

    def column(self, position: int) -> Any:
        """Returns the cells of a column (pyarrow array)."""
        return pa.concat_arrays([rows.column(position) for _, rows in self._parts])

    def _keep(self, numbers: Any, rows: Any) -> None:
        self._parts.append((numbers, rows))
        self._num_rows += len(rows)
        self._num_bytes += rows.nbytes

    @staticmethod
    def _taken(rows: Any, places: Any) -> Any:
        return rows if len(places) == len(rows) else rows.take(pa.array(places))
