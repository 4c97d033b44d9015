"""The cells that mean "no value"."""

from typing import Any

MISSING_TOKENS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "-")
"""Cells that mean "no value" (besides white space)."""


def is_missing(text: str) -> bool:
    """Returns whether a cell, without white space around it, means "no value"."""
    return text in MISSING_TOKENS


def find_missing(cells: Any) -> tuple[Any, Any]:
    """Returns cells without white space around them, and a mask of those that mean "no value".

    `cells`: pyarrow string array; both results are arrays of its length.
    """
    import pyarrow
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    return trimmed, pc.is_in(trimmed, value_set=pyarrow.array(MISSING_TOKENS))
