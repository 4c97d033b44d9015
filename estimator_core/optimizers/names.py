"""Lookup of optimizers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any


def optimizer_named(name: str, choices: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Returns the factory of the optimizer of that name."""
    if name in choices:
        return choices[name]
    nearest = difflib.get_close_matches(name, choices, n=len(choices), cutoff=0.0)
    raise ValueError(
        f"Unsupported optimizer name: it must be one of {nearest}. Received: optimizer={name!r}"
    )
