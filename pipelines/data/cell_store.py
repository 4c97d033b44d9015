"""Cells of columns with many different values, kept in a file, so that the user's files are read once."""

import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.errors import BadInputError


class CellStore:
    """Keeps cells by column, in a temporary file that lasts as long as the store."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._writer: Any = None
        self._reader: Any = None
        self._places: dict[str, list[int]] = defaultdict(list)
        self._num_batches = 0
        self._lock = threading.Lock()  # of `add`

    def __contains__(self, column: str) -> bool:
        return column in self._places

    def add(self, column: str, values: Any, counts: Any) -> None:
        """Adds cells of a column.

        `counts`: number of occurrences of each of them (int64).
        """
        import pyarrow as pa

        batch = pa.record_batch({"values": values, "counts": pa.array(counts, pa.int64())})
        with self._lock:
            try:
                self._write(batch)
            except OSError as error:
                raise BadInputError(
                    f"The cells of column {column!r} cannot be kept in {tempfile.gettempdir()} while the "
                    f"files are read: {error}. Make room there, or let TMPDIR name a folder that has it."
                ) from error
            self._places[column].append(self._num_batches)
            self._num_batches += 1

    def _write(self, batch: Any) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pipelines-cells-")
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            path = str(Path(self._folder.name, "cells.arrow"))
            self._writer = pa.ipc.new_file(path, batch.schema, options=options)
        self._writer.write_batch(batch)

    def chunks(self, column: str) -> Iterator[tuple[Any, Any]]:
        """Yields the cells of a column, as they were added; none can be added from then on."""
        import pyarrow as pa

        if self._reader is None and self._folder is not None:
            self._writer.close()
            self._reader = pa.ipc.open_file(str(Path(self._folder.name, "cells.arrow")))
        for place in self._places[column]:
            batch = self._reader.get_batch(place)
            yield batch["values"], batch["counts"].to_numpy()
