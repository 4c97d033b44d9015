"""Merges the statistics of columns once.

TFDV gives Beam the function that merges statistics, and Beam calls it for each ten of them, with all that is
merged so far. There are two for each column of categories, so the time grows with the square of the columns.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import apache_beam as beam

_Merge: TypeAlias = Callable[[Iterable[Any]], Any]


class MergeOnce(beam.CombineFn):
    """Collects statistics, and merges them at the end. It can still be called like the original function."""

    def __init__(self, merge: _Merge) -> None:
        super().__init__()
        self._merge = merge

    def __call__(self, statistics: Iterable[Any]) -> Any:
        return self._merge(statistics)

    def create_accumulator(self) -> list[Any]:
        return []

    def add_input(self, accumulator: list[Any], statistics: Any) -> list[Any]:
        accumulator.append(statistics)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Any]]) -> list[Any]:
        return [statistics for accumulator in accumulators for statistics in accumulator]

    def compact(self, accumulator: list[Any]) -> list[Any]:
        """Returns the statistics merged, before they are sent."""
        return [self._merge(accumulator)] if len(accumulator) > 1 else accumulator

    def extract_output(self, accumulator: list[Any]) -> Any:
        return self._merge(accumulator)
