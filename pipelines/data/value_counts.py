"""Counts of the different values of a column, in arrays: a wide table has millions of them."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

_MAX_PARTS = 64  # with few values each: the parts would take more memory than the values


class ValueCounts(Mapping[str, int]):
    """Number of occurrences by value, in the order in which the values first occur.

    `texts`: The values (pyarrow string array), each once.
    `occurrences`: Number of occurrences of each of them (int64 array).
    """

    def __init__(self, texts: Any, occurrences: Any):
        self.texts, self.occurrences = texts, occurrences

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts.to_pylist())

    def __getitem__(self, text: str) -> int:
        return self._by_text[text]

    def __repr__(self) -> str:
        return repr(self._by_text)

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return dict(zip(self.texts.to_pylist(), self.occurrences.tolist(), strict=True))


class ValueCounter:
    """Counts values batch by batch."""

    def __init__(self) -> None:
        self._parts: list[ValueCounts] = []
        self._num_texts = 0  # of all parts

    def add(self, part: ValueCounts) -> None:
        """Adds the counts of a batch."""
        self._parts.append(part)
        self._num_texts += len(part)
        if len(self._parts) > _MAX_PARTS:
            self.merge()

    def is_beyond(self, max_distinct: int) -> bool:
        """Returns whether there are more different values than that."""
        return self._num_texts > max_distinct and len(self.merge()) > max_distinct

    def merge(self) -> ValueCounts:
        """Returns the counts of all batches so far."""
        import pyarrow

        if not self._parts:
            return ValueCounts(pyarrow.array([], pyarrow.string()), np.array([], np.int64))
        if len(self._parts) > 1:
            texts = pyarrow.concat_arrays([part.texts for part in self._parts]).dictionary_encode()
            occurrences: Any = np.zeros(len(texts.dictionary), np.int64)
            added = np.concatenate([part.occurrences for part in self._parts])
            np.add.at(occurrences, texts.indices.to_numpy(), added)
            self._parts = [ValueCounts(texts.dictionary, occurrences)]
            self._num_texts = len(self._parts[0])
        return self._parts[0]
