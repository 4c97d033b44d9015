"""Casts the cells of rows to the types of a model's columns."""

import decimal
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from components.nearest import nearest_first
from pipelines.data.formats.cell_format import CellFormat
from pipelines.data.missing import is_missing
from pipelines.errors import BadInputError, counted, shown
from pipelines.serving.saved_model import Column, ColumnType

Cells = dict[str, list[Any]]
"""Cells by column: int, float or bytes, a list of them, or None for a missing value."""

_WANTED = {"INT": "a whole number", "FLOAT": "a number", "BYTES": "text"}
_OR_MISSING = "or None (in JSON null) if it is missing."
_DTYPE_ADVICE = "If it is from a file, read_csv(..., dtype=str) keeps the text."
_NO_VALUE = ("NAType", "NaTType")  # of pandas
_MISSPELLED = 0.75  # similarity of a name that is not known to one that is
_INT64 = range(-(2**63), 2**63)
_MAX_EXACT = 2**53  # whole numbers up to here are exact as a float


class CellError(BadInputError):
    """A cell that does not fit its column."""

    def __init__(self, row: int, column: str, reason: str):
        super().__init__(f"row {row + 1}, column {column!r}: {reason}")
        self.row = row
        self.column = column
        self.reason = reason


def to_cells(
    rows: Any, columns: Mapping[str, Column], max_comparisons: int | None = None
) -> tuple[Cells, int]:
    """Returns the cells of rows, and the number of rows.

    `rows`: list of dicts, a dict of columns (lists or arrays), or a pandas DataFrame.
    `max_comparisons`: number of other columns, times that of absent ones, up to which they are compared for
    misspelled names. Default: there is no limit.
    """
    if hasattr(rows, "columns") and hasattr(rows, "isna"):
        return _cells_of_frame(rows, columns)
    if isinstance(rows, Mapping):
        return _cells_of_columns(rows, columns, max_comparisons)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        return _cells_of_rows(rows, columns, max_comparisons)
    raise BadInputError(
        f"Rows are a list of dicts, a dict of columns, or a DataFrame. Received: {shown(repr(rows))}"
    )


def check_names(
    names: Any,
    columns: Mapping[str, Column],
    where: str = "the rows have",
    max_comparisons: int | None = None,
) -> None:
    """Checks the names of columns: at least one is the model's, and none seems to be misspelled."""
    _check_spelling([(dict.fromkeys(names), where)], columns, max_comparisons)
    _check_any(names, columns, where)


def _check_any(names: Any, columns: Mapping[str, Column], where: str) -> None:
    if not any(name in names for name in columns):
        raise BadInputError(
            f"None of the model's columns is given: {where} {listed(names)}; the model takes "
            f"{listed(columns)}."
        )


def _check_spelling(
    forms: Sequence[tuple[Collection[Any], str]], columns: Mapping[str, Column], max_comparisons: int | None
) -> None:
    """Checks that no name seems to be a column's that is absent; a form has names, and words for them."""
    unused = dict.fromkeys(name for names, _ in forms for name in names if name not in columns)
    for name in unused:
        if not isinstance(name, str):
            raise BadInputError(f"A column's name must be text. Received: {shown(repr(name))}")
    absent = [name for name in columns if not all(name in names for names, _ in forms)]
    # Comparing every unknown name with every absent column may take too long for a server.
    if max_comparisons is not None and len(unused) * len(absent) > max_comparisons:
        raise BadInputError(
            f"{forms[0][1]} {counted(len(unused), 'column')} that the model does not take, such as "
            f"{shown(repr(next(iter(unused))))}, and its column {absent[0]!r} is missing. These are too many "
            "to check for misspelled names. Send only the model's columns."
        )
    near_columns = functools.cache(lambda name: nearest_first(name, absent, _MISSPELLED))
    for names, where in forms:
        for name in names:
            if name in columns:
                continue
            near = next((column for column in near_columns(name) if column not in names), None)
            if near is not None:
                raise BadInputError(
                    f"Unknown column {name!r}, and {where} no {near!r}. Rename it, or leave it out if it is "
                    "a different column."
                )


def check_required(cells: Cells, columns: Mapping[str, Column], num_rows: int) -> None:
    """Checks that each row has a value in the columns that need one."""
    for column in columns.values():
        if column.is_required:
            values = cells.get(column.name) or [None] * num_rows
            for row, value in enumerate(values):
                if value is None:
                    raise CellError(row, column.name, "there is no value, and the model needs one. Give one.")


def _cells_of_rows(
    rows: Sequence[Any], columns: Mapping[str, Column], max_comparisons: int | None
) -> tuple[Cells, int]:
    positions: dict[frozenset[Any], int] = {}  # of the first row with these columns, in any order
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise BadInputError(f"row {position + 1} is not a dict of columns. Received: {shown(repr(row))}")
        positions.setdefault(frozenset(row), position)
    forms = [(rows[position], f"row {position + 1} has") for position in positions.values()]
    names = dict.fromkeys(name for form, _ in forms for name in form)
    if rows:
        _check_spelling([(names, "the rows have"), *forms], columns, max_comparisons)
        _check_any(names, columns, "the rows have")
        for form, where in forms:
            if form:  # a row without any name has missing values only
                _check_any(form, columns, where)
    cells = {name: cast([row.get(name) for row in rows], columns[name]) for name in names if name in columns}
    check_required(cells, columns, len(rows))
    return cells, len(rows)


def _cells_of_columns(
    values_by_name: Mapping[Any, Any], columns: Mapping[str, Column], max_comparisons: int | None
) -> tuple[Cells, int]:
    check_names(values_by_name, columns, max_comparisons=max_comparisons)
    lists: dict[str, list[Any]] = {}
    for name, values in values_by_name.items():
        is_list = hasattr(values, "__len__") and getattr(values, "ndim", 1) > 0
        if isinstance(values, str | bytes | Mapping) or not is_list:
            raise BadInputError(
                f"column {name!r}: a list or an array is expected, with a value for each row. Received: "
                f"{shown(repr(values))}. One row is a list of one dict: [{{...}}]."
            )
        if name in columns:
            lists[name] = values.tolist() if hasattr(values, "tolist") else list(values)
    sizes = {name: len(values) for name, values in lists.items()}
    num_rows = next(iter(sizes.values()))
    for name, size in sizes.items():
        if size != num_rows:
            raise BadInputError(
                f"The columns differ in their number of rows: {next(iter(sizes))!r} with "
                f"{num_rows}, {name!r} with {size}."
            )
    cells = {name: cast(values, columns[name]) for name, values in lists.items()}
    check_required(cells, columns, num_rows)
    return cells, num_rows


def _cells_of_frame(frame: Any, columns: Mapping[str, Column]) -> tuple[Cells, int]:
    names = list(frame.columns)
    check_names(names, columns)
    for name in columns:
        if names.count(name) > 1:
            raise BadInputError(f"The column {name!r} appears {names.count(name)} times. Rename one.")
    cells = {}
    for name in frame.columns:
        if name in columns:
            values = frame[name].tolist()
            missing = frame[name].isna().tolist()
            cells[name] = _cast_of_frame(
                [None if gone else value for value, gone in zip(values, missing, strict=True)], columns[name]
            )
    check_required(cells, columns, len(frame))
    return cells, len(frame)


def _cast_of_frame(values: Sequence[Any], column: Column) -> list[Any]:
    """Returns the cells of a column whose types pandas has guessed, or whose cells are all text."""
    if column.type != "BYTES":
        return cast(numbers_of_texts(values, column), column)
    try:
        return cast(values, column)
    except CellError as error:
        if isinstance(values[error.row], str):
            raise
        raise CellError(error.row, error.column, f"{error.reason} {_DTYPE_ADVICE}") from None


def numbers_of_texts(values: Sequence[Any], column: Column) -> list[Any]:
    """Returns the values of a column of numbers, of which text is read as CsvExampleGen reads a cell."""
    numbers = list(values)
    for row, value in enumerate(values):
        if isinstance(value, str):
            text = value.strip()
            try:
                numbers[row] = None if is_missing(text) else _number_of_text(text.encode())
            except ValueError:
                whole = "whole " if column.type == "INT" else ""
                raise CellError(
                    row,
                    column.name,
                    f"{value!r} is not a {whole}number, and the column had {whole}numbers in training. "
                    "Correct it, or leave the cell empty.",
                ) from None
            if column.type == "INT" and numbers[row] is not None and is_beyond_int64(numbers[row]):
                raise CellError(row, column.name, beyond_int64(value))
    return numbers


def _number_of_text(text: bytes) -> int | float:
    try:
        return int(text)  # a float would round a large one
    except ValueError:
        return float(text)


def cast(values: Sequence[Any], column: Column) -> list[Any]:
    """Returns the cells of a column.

    A whole number is also a number, and 12.0 is also a whole number. None, NaN and empty text are missing
    values. In a column of text, numbers, dates and booleans are written in the format of its cells.
    """
    convert = _CONVERT[column.type]
    cell_format = column.format or column.text_format
    cells: list[Any] = []
    for row, value in enumerate(values):
        if column.takes_one and isinstance(value, list | tuple) and len(value) == 1:
            (item,) = value  # as in a tensor of shape [rows, 1]
            value = value if isinstance(item, list | tuple) else item
        if cell_format is not None:
            value = cell_format.written(value)
        try:
            cells.append(None if value is None else convert(value))
        except _UnfitError:
            raise CellError(row, column.name, _reason(value, column.type)) from None
        if column.takes_one and type(cells[-1]) is list:
            if len(cells[-1]) > 1:
                raise CellError(row, column.name, several(value))
            (cells[-1],) = cells[-1]
    if column.format is not None:
        for row, cell in enumerate(cells):
            if cell is not None and not column.format.reads(cell.decode(errors="replace")):
                raise CellError(row, column.name, unreadable(values[row], column.format))
    return cells


def several(value: Any) -> str:
    """Returns the error message for a cell with several values."""
    return f"{shown(repr(value))} are several values, and the model takes one. Give one."


def unreadable(value: Any, cell_format: CellFormat) -> str:
    """Returns the error message for text that is not in the format of its column."""
    what = "date" if cell_format.date else "number"
    return (
        f"{shown(repr(value))} cannot be read as a {what}; the column had {cell_format.describe()} in "
        "training. Use that format, or leave the cell empty."
    )


class _UnfitError(Exception):
    """The value does not fit; the caller knows its row and column."""


def _number(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return None if value != value else value
    if kind is int:
        try:
            return float(value)
        except OverflowError:
            raise _UnfitError from None
    return _other(value, _number)


def _whole(value: Any) -> Any:
    kind = type(value)
    if kind is int and value in _INT64:
        return value
    if kind is float:
        if value != value:
            return None
        if value.is_integer() and abs(value) <= _MAX_EXACT:
            return int(value)
    if kind in (int, float):
        raise _UnfitError
    return _other(value, _whole)


def _text(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise _UnfitError from None
    if kind is bytes:
        return value
    if kind is float and value != value:
        return None
    return _other(value, _text)


def _other(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Converts an empty text, a scalar of NumPy, a decimal number, or each value of a list."""
    if (type(value) is str and not value) or type(value).__name__ in _NO_VALUE:
        return None
    if isinstance(value, decimal.Decimal):
        return convert(int(value) if value.is_finite() and value % 1 == 0 else float(value))
    if isinstance(value, list | tuple):
        items = [item for item in value if not isinstance(item, list | tuple)]
        cells = [None if item is None else convert(item) for item in items]
        if len(cells) != len(value) or (None in cells and len(cells) > 1):
            raise _UnfitError
        return None if cells in ([], [None]) else cells
    if type(value) in (bool, str, int, float) or not hasattr(value, "tolist"):
        raise _UnfitError
    return convert(value.tolist())


_CONVERT: dict[ColumnType, Callable[[Any], Any]] = {
    "INT": _whole,
    "FLOAT": _number,
    "BYTES": lambda value: _text(value) or None,  # an empty cell of a CSV is a missing value, too
}


def is_beyond_int64(number: float) -> bool:
    """Returns whether 64 bits cannot hold a number, be it whole or not."""
    if isinstance(number, float):
        return math.isfinite(number) and not -(2.0**63) <= number < 2.0**63
    return number not in _INT64


def beyond_int64(text: str) -> str:
    """Returns the error message for a number that 64 bits cannot hold."""
    return (
        f"{shown(text)} is not a 64-bit integer, as the column had in training ({_INT64[0]} to "
        f"{_INT64[-1]}). Correct it, or give no value."
    )


def _reason(value: Any, wanted: ColumnType) -> str:
    received = shown(repr(value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted == "INT" and is_number and is_beyond_int64(value):
        return beyond_int64(repr(value))
    if wanted == "BYTES":
        fix = f"Give the text of the CSV, in quotes, {_OR_MISSING}"
    elif wanted == "INT" and is_number and float(value).is_integer():
        return f"{received} is beyond 2^53, where floats are not exact. Write it as an integer."
    elif wanted == "INT" and is_number:
        fix = "The column had whole numbers in training: round it."
    elif isinstance(value, str):
        fix = f"Give a number without quotes, {_OR_MISSING}"
    else:
        fix = f"Give {_WANTED[wanted]}, {_OR_MISSING}"
    return f"{received} is not {_WANTED[wanted]}. {fix}"


def listed(names: Any) -> str:
    """Returns names, separated by commas; of more than 20, the first and how many follow."""
    names = list(map(str, names))
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return (", ".join(names[:20]) or "none") + more
