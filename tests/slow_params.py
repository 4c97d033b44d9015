"""Parameters of tests, of which `make test` leaves some to `make test-all`."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def with_slow(values: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Returns the values for `pytest.mark.parametrize`, those in `slow` marked as slow.

    Raises:
        ValueError: `slow` has a value that is none of the values.
    """
    values = list(values)
    if unknown := [value for value in slow if value not in values]:
        raise ValueError(f"slow must hold some of {values}. Received: {unknown}")
    return [pytest.param(value, marks=pytest.mark.slow) if value in slow else value for value in values]
