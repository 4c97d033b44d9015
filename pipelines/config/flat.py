"""The settings of a configuration by their full keys."""

from collections.abc import Mapping
from typing import Any


def flat_settings(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the values of nested sections by `section.key`.

    Args:
        tree: Configuration, or a section of it, as dicts.
        prefix: Start of the keys, such as `data.`.
    """
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
