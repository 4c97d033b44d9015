"""Works on the next item of an iterator while the last one is used."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yields the items of an iterator, which works on the next one in a thread of its own.

    It is for work without Python's lock: decompression, and the loops of Arrow and TensorFlow.

    Args:
        items: Items, none of which is None. An error reaches the caller at the place of its item.
    """
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item
