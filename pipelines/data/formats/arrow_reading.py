"""Reads cells in their formats with pyarrow, as `pipelines.tabular.cell_reading` does in a graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.data.formats.date_format import DateFormat, epoch_seconds
from pipelines.data.formats.number_format import NumberFormat, pattern_and_terms


@dataclass(frozen=True)
class Times:
    """Points in time, one for each cell."""

    is_valid: Any  # True where the cell is a time; elsewhere the other attributes are meaningless
    local_secs: Any  # Seconds since 1970 in local time
    utc_secs: Any  # Seconds since 1970 in UTC


def matches(cells: Any, pattern: str) -> Any:
    """Returns a mask (NumPy) of the cells (pyarrow string array) that match."""
    import pyarrow.compute as pc

    return pc.match_substring_regex(cells, pattern).to_numpy(zero_copy_only=False)


def read_numbers(cells: Any, number_format: NumberFormat | None) -> Any:
    """Returns the numbers of cells as float64; NaN where a cell is not a number."""
    import pyarrow.compute as pc

    pattern, terms = pattern_and_terms(number_format)
    is_number = pc.match_substring_regex(cells, pattern)
    total: Any = 0.0
    for steps, factor in terms:
        text = cells
        for wanted, replacement in steps:
            text = pc.replace_substring_regex(text, wanted, replacement)
        numbers = pc.if_else(is_number, text, "nan").cast(pa.float64())
        total = total + factor * numbers.to_numpy(zero_copy_only=False)
    return total


def read_times(cells: Any, date_format: DateFormat) -> Times:
    """Returns the points in time of cells."""
    import pyarrow.compute as pc

    if date_format.unit_secs is not None:
        numbers = read_numbers(cells, None)
        is_valid = np.isfinite(numbers)
        secs = np.floor(np.where(is_valid, numbers, 0) * date_format.unit_secs).astype(np.int64)
        return Times(is_valid, secs, secs)
    is_valid = matches(cells, date_format.pattern)
    valid_cells = pc.if_else(pa.array(is_valid), cells, "")
    parts: dict[Any, Any] = {}
    for part, steps in date_format.parts.items():
        text = valid_cells
        for pattern, replacement in steps:
            text = pc.replace_substring_regex(text, pattern, replacement)
        parts[part] = text.cast(pa.int64()).to_numpy(zero_copy_only=False)
    local, utc, is_known = epoch_seconds(parts)
    return Times(is_valid & is_known, local, utc)
