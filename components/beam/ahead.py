"""Works on the next items of an iterator while the last one is used."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yields the items of an iterator, which works on the next one in its own thread.

    It is for work that releases Python's lock: decompression, and the loops of Arrow and TensorFlow.
    """
    return map_ahead(lambda item: item, items, threads=1)


def map_ahead(function: Callable[[S], T], items: Iterable[S], threads: int = 2) -> Generator[T, None, None]:
    """Yields the value of a function for each item, in order, and works on the next ones in threads."""
    following = iter(items)
    end = object()

    def value(item: "Future[Any]") -> Any:
        return end if item.result() is end else function(item.result())

    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(threads) as workers:

        def start() -> "Future[Any]":
            return workers.submit(value, reader.submit(next, following, end))

        started = deque(start() for _ in range(threads))
        while (result := started.popleft().result()) is not end:
            started.append(start())
            yield result
