"""A sequence that computes its items on access."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

S = TypeVar("S")
T = TypeVar("T")


class LazySequence(Sequence[T], Generic[S, T]):
    """A sequence that applies a function to the items of another sequence on access.

    Thus a `range` can represent many times. A slice is lazy, too.

    Args:
      items: Items of the other sequence.
      make: Function from an item to an item of this sequence.

    Example:
      >>> squares = LazySequence(range(10**12), lambda number: number * number)
      >>> squares[-1], len(squares[2:])
      (999999999998000000000001, 999999999998)
    """

    def __init__(self, items: Sequence[S], make: Callable[[S], T]):
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> "LazySequence[S, T]": ...

    def __getitem__(self, index: int | slice) -> "T | LazySequence[S, T]":
        if isinstance(index, slice):
            return LazySequence(self._items[index], self._make)
        return self._make(self._items[index])
