"""Cases of a test that `make test` runs, and those that it leaves to `make test-more` and `make test-all`."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

import pytest


def in_circles(
    values: Iterable[Any], *, first: Collection[Any] | None = None, slow: Collection[Any] = ()
) -> list[Any]:
    """Returns the values for `pytest.mark.parametrize`.

    Args:
        values: All cases.
        first: Cases that `make test` runs; None for all that are not slow.
        slow: Cases that only `make test-all` runs.
    """
    values = list(values)
    if unknown := [value for value in (*(first or ()), *slow) if value not in values]:
        raise ValueError(f"first and slow must hold some of {values}. Received: {unknown}")
    return [
        pytest.param(value, marks=pytest.mark.slow)
        if value in slow
        else pytest.param(value, marks=pytest.mark.more)
        if first is not None and value not in first
        else value
        for value in values
    ]


def mark_all_but_samples(items: Iterable[pytest.Item]) -> None:
    """Marks the cases that `make test` leaves out of a test marked `sampled(count)`."""
    tests = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker and not (item.get_closest_marker("more") or item.get_closest_marker("slow")):
            tests[item.parent, item.originalname, marker.args[0]].append(item)
    for (_, _, count), cases in tests.items():
        kept = {number * (len(cases) - 1) // max(count - 1, 1) for number in range(count)}
        for number, case in enumerate(cases):
            if number not in kept:
                case.add_marker(pytest.mark.more)
