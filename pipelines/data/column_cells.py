"""The cells of one column that have a value, for any number of passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.data.missing import find_missing
from pipelines.data.profile import CsvProfile
from pipelines.data.reading import read_batches

_MAX_SAMPLE = 20_000


@dataclass(frozen=True)
class ColumnCells:
    """The cells of one column that have a value, without white space around them.

    They come from the counts of the profile, or from the files where the distinct values are too many.
    """

    profile: CsvProfile
    column: str

    def chunks(self) -> Iterator[tuple[Any, Any]]:
        """Yields pyarrow string arrays, and the number of occurrences of each element (int64)."""
        counted = self.profile.columns[self.column].distinct_values
        if counted is not None:
            if counted:
                yield counted.texts, counted.occurrences
            return
        if self.profile.cells is not None and self.column in self.profile.cells:
            yield from self.profile.cells.chunks(self.column)
            return
        yield from self.chunks_with(self.column)

    def chunks_with(self, other: str) -> Iterator[tuple[Any, Any]]:
        """Yields `chunks` of the rows that have a value in another column as well."""
        import pyarrow.compute as pc

        header = list(self.profile.columns)
        positions = [header.index(name) for name in dict.fromkeys((self.column, other))]
        for file in self.profile.files:
            for batch in read_batches(file, header, self.profile.dialect, positions):
                trimmed, missing = find_missing(batch.column(0))
                values = trimmed.filter(pc.invert(pc.or_(missing, find_missing(batch.columns[-1])[1])))
                if len(values):
                    yield values, np.ones(len(values), np.int64)

    def sample(self) -> tuple[Any, Any]:
        """Returns the first 20,000 cells or distinct values, as `chunks` does; there must be one."""
        values, counts = next(self.chunks())
        return values.slice(0, _MAX_SAMPLE), counts[:_MAX_SAMPLE]

    def is_common(self, pattern: str) -> bool:
        """Returns whether at least half of the sample matches a regular expression."""
        import pyarrow.compute as pc

        values, counts = self.sample()
        matching = pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False)
        return bool(2 * counts[matching].sum() >= counts.sum())

    def count(self, pattern: str) -> int:
        """Returns the number of cells that match a regular expression in RE2's syntax."""
        import pyarrow.compute as pc

        return sum(
            int((pc.match_substring_regex(values, pattern).to_numpy(zero_copy_only=False) * counts).sum())
            for values, counts in self.chunks()
        )

    def all_match(self, pattern: str) -> bool:
        """Returns whether every cell matches; there must be at least one."""
        import pyarrow.compute as pc

        return all(pc.all(pc.match_substring_regex(values, pattern)).as_py() for values, _ in self.chunks())
