"""Recognizes columns of lists, such as `Comedy|Drama`, and their parts."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pipelines.data.column_cells import ColumnCells
from pipelines.errors import counted

MAX_PARTS = 100
"""Number of parts of a column that a model sees, the most frequent ones."""

_SEPARATORS = (";", "|")
_GIVEN_SEPARATORS = (*_SEPARATORS, ",")  # texts have commas, too
_MIN_LIST_SHARE = 0.1  # of the cells that have the separator
_MIN_REPETITIONS = 5  # of a part on average; rarer ones are texts
_MAX_DISTINCT_PARTS = 1_000


@dataclass(frozen=True)
class ListParts:
    """Parts of the lists of a column."""

    separator: str  # Character between the parts
    parts: tuple[str, ...]  # The most frequent parts, in descending order of frequency
    num_parts: int

    def describe(self) -> str:
        """Returns a description of the parts."""
        more = f"; the {MAX_PARTS} most frequent are used" if self.num_parts > MAX_PARTS else ""
        return (
            f"lists of {counted(self.num_parts, 'different part')} between {self.separator!r}{more}"
        )


def find_list(cells: ColumnCells, is_given: bool = False) -> ListParts | None:
    """Returns the parts of a column of lists; None if it holds none."""
    separators = _GIVEN_SEPARATORS if is_given else _SEPARATORS
    found = {mark: cells.count(f"[{mark}]") for mark in separators}
    separator = max(found, key=lambda mark: found[mark])
    num_cells = cells.profile.columns[cells.column].num_values
    if not found[separator] or not (is_given or found[separator] >= _MIN_LIST_SHARE * num_cells):
        return None
    counts: Counter[str] = Counter()
    for values, occurrences in cells.chunks():
        counts.update(_count_parts(values, occurrences, separator))
        if not is_given and len(counts) > _MAX_DISTINCT_PARTS:
            return None
    if not is_given and counts.total() < _MIN_REPETITIONS * len(counts):
        return None
    parts = sorted(counts, key=lambda part: (-counts[part], part))
    return ListParts(separator, tuple(parts[:MAX_PARTS]), len(parts))


def _count_parts(values: Any, occurrences: Any, separator: str) -> dict[str, int]:
    import numpy as np
    import pyarrow.compute as pc

    lists = pc.split_pattern(values, separator)
    parts = pc.utf8_trim_whitespace(pc.list_flatten(lists)).dictionary_encode()
    weights = occurrences[pc.list_parent_indices(lists).to_numpy()]
    sums = np.bincount(parts.indices.to_numpy(), weights, len(parts.dictionary))
    pairs = zip(parts.dictionary.to_pylist(), sums.astype(int).tolist(), strict=True)
    return {part: count for part, count in pairs if part}
