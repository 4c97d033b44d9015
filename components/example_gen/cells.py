"""The type of a CSV column, and its cells as values of that type.

One rule holds for each cell, `cell_type`. A regular expression finds the cells on which pyarrow agrees with
it, nearly all of them; the others are decided by the rule itself, one by one.
"""

import enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INTEGER = r"^-?[0-9]{1,18}$"
_NUMBER = r"^-?(?:[0-9]{1,18}|[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?$"
_INT64 = range(-(2**63), 2**63)


class ColumnType(enum.IntEnum):
    """Type of a column; of two cells, the greater type holds both."""

    EMPTY = 0
    INTEGER = 1
    FLOAT = 2
    TEXT = 3


def cell_type(cell: str) -> ColumnType:
    """Returns the type of a cell.

    Source: TFX's CsvExampleGen. A cell is a number if `int` or `float` reads its bytes: with white space
    around it, underscores, `nan` and `inf`. An integer beyond int64 is text.
    """
    content = cell.encode()
    if not content:
        return ColumnType.EMPTY
    try:
        return ColumnType.INTEGER if int(content) in _INT64 else ColumnType.TEXT
    except ValueError:
        pass
    try:
        float(content)
    except ValueError:
        return ColumnType.TEXT
    return ColumnType.FLOAT


def infer_type(cells: Any, least: ColumnType = ColumnType.EMPTY) -> ColumnType:
    if least is ColumnType.TEXT:
        return least
    values = cells.filter(pc.not_equal(pc.binary_length(cells), 0))
    if not len(values):
        return least
    least = max(least, cell_type(values[0].as_py()))
    if least is ColumnType.TEXT:
        return least
    if least is ColumnType.INTEGER:
        is_integer = pc.match_substring_regex(values, _INTEGER)
        if pc.all(is_integer).as_py():
            return least
        values = values.filter(pc.invert(is_integer))
    is_number = pc.match_substring_regex(values, _NUMBER)
    if pc.any(is_number).as_py() and least is ColumnType.INTEGER:
        least = ColumnType.FLOAT
    for cell in values.filter(pc.invert(is_number)).unique():
        least = max(least, cell_type(cell.as_py()))
        if least is ColumnType.TEXT:
            break
    return least


def convert(cells: Any, column_type: ColumnType, float_type: Any = None) -> Any:
    """Returns the values of cells as a pyarrow array, null where a cell is empty."""
    if column_type is ColumnType.EMPTY:
        if pc.max(pc.binary_length(cells)).as_py():
            raise ValueError("a cell is not empty")
        return pa.nulls(len(cells))
    is_empty = pc.equal(pc.binary_length(cells), 0)
    if column_type is ColumnType.TEXT:
        return with_nulls(cells.cast(pa.binary()), is_empty)
    if column_type is ColumnType.INTEGER:
        return _numbers(cells, is_empty, _INTEGER, pa.int64(), int)
    # First float64, then float32, as Python does: directly, the last digit may differ.
    return _numbers(cells, is_empty, _NUMBER, pa.float64(), float).cast(float_type or pa.float32())


def with_nulls(values: Any, is_null: Any) -> Any:
    """Returns a pyarrow array with a null at each place of a mask.

    pyarrow's `if_else` does the same, but returns broken strings for a slice of an array (seen in 18.1).
    """
    return pc.replace_with_mask(values, is_null, pa.scalar(None, values.type))


def _numbers(cells: Any, is_empty: Any, pattern: str, arrow_type: Any, rule: type) -> Any:
    """Returns numbers: pyarrow reads the cells that match the pattern, the rule reads the others."""
    is_plain = pc.match_substring_regex(cells, pattern)
    numbers = with_nulls(cells, pc.invert(is_plain)).cast(arrow_type)
    is_other = pc.invert(pc.or_(is_plain, is_empty))
    if not pc.any(is_other).as_py():
        return numbers
    values = numbers.fill_null(0).to_numpy().copy()
    others = cells.filter(is_other).to_pylist()
    values[np.asarray(is_other)] = [rule(cell.encode()) for cell in others]
    return pa.array(values, mask=np.asarray(is_empty))
