"""Columns of a CSV as a model takes them: typed pyarrow arrays, and the inputs of a signature."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.cells import ColumnType, convert, infer_type, with_nulls
from components.example_gen.example_encoder import serialize
from pipelines.data.missing import find_missing
from pipelines.serving.cells import CellError, cast, numbers_of_texts, unreadable
from pipelines.serving.model import MISSING, in_range
from pipelines.serving.saved_model import Column, Signature

_TYPES = {"INT": pa.int64(), "FLOAT": pa.float64(), "BYTES": pa.binary()}
_SERIALIZED_TYPES = {**_TYPES, "FLOAT": pa.float32()}


@dataclass(frozen=True)
class UnreadCells:
    """Cells that count as missing though they have text, as such cells did in the training."""

    column: str
    count: int
    row: int  # Position of the row of the first, from 0
    cell: str


def typed_columns(
    texts: Mapping[str, Any], columns: Mapping[str, Column], num_rows: int
) -> tuple[dict[str, Any], list[UnreadCells]]:
    """Returns the model's columns as arrays of int64, float64 and binary, null where a value is missing.

    The second result has the cells that the model cannot read, in columns that had such cells in training.
    A cell is missing if it is empty or, in a column of numbers, has a word such as `NA`.
    """
    arrays = {
        name: _text(texts[name]) if column.type == "BYTES" else _numbers(texts[name], column)
        for name, column in columns.items()
        if name in texts
    }
    for name, column in columns.items():
        array = arrays.get(name, pa.nulls(num_rows))
        if column.is_required and array.null_count:
            row = pc.index(array.is_null(), True).as_py()
            raise CellError(row, name, "there is no value, and the model needs one. Give one.")
    return arrays, [cells for name in arrays for cells in _unread(texts[name], columns[name])]


def inputs_of_columns(arrays: Mapping[str, Any], signature: Signature, num_rows: int) -> dict[str, Any]:
    """Returns the inputs of a signature as NumPy arrays, by name; see `signature_inputs`, which takes cells.

    `arrays`: arrays of `typed_columns`; a column may be absent.
    """
    if signature.takes_examples:
        (name,) = signature.inputs
        features = {
            key: array.cast(_SERIALIZED_TYPES[signature.columns[key].type], safe=False)
            for key, array in arrays.items()
        }
        batch = pa.RecordBatch.from_pydict(features or {"": pa.nulls(num_rows)})
        parts = serialize(batch, leaves_out_nulls=True)
        rows = [row for part in parts for row in part.to_pylist()]
        return {name: np.array(rows, object)}
    inputs = {}
    for name, column in signature.columns.items():
        tensor, missing = signature.inputs[name], MISSING[column.type]
        array = arrays.get(name, pa.nulls(num_rows, _TYPES[column.type]))
        values = array.fill_null(missing).to_numpy(zero_copy_only=False)
        if column.type == "INT":
            values = in_range(values, name, tensor.dtype.as_numpy_dtype)
        else:
            values = values.astype(object if column.type == "BYTES" else tensor.dtype.as_numpy_dtype)
        inputs[name] = values.reshape((num_rows, *(1 for _ in (tensor.shape or ())[1:])))
    return inputs


def _unread(cells: Any, column: Column) -> Iterator[UnreadCells]:
    """Yields the cells of text that are in no format of the column, if there are."""
    if column.format is None:
        return
    trimmed, is_missing = find_missing(cells)
    is_read = column.format.is_read(trimmed)
    unread = ~is_read & ~is_missing.to_numpy(zero_copy_only=False)
    if unread.any():
        rows = np.flatnonzero(unread)
        texts = cells.take(pa.array(rows)).to_pylist()
        for row, text in zip(rows, texts, strict=True):
            if not column.format.reads(text):
                raise CellError(int(row), column.name, unreadable(text, column.format))
        yield UnreadCells(column.name, len(rows), int(rows[0]), texts[0])


def _text(cells: Any) -> Any:
    values = cells.cast(pa.binary())
    return with_nulls(values, pc.equal(pc.binary_length(values), 0))


def _numbers(cells: Any, column: Column) -> Any:
    """Returns numbers, by CsvExampleGen's rule of which cells are numbers."""
    trimmed, missing = find_missing(cells)
    texts = pc.if_else(missing, "", trimmed)
    kind = infer_type(texts)
    wanted = ColumnType.INTEGER if column.type == "INT" else ColumnType.FLOAT
    if kind is ColumnType.EMPTY:
        return pa.nulls(len(cells), _TYPES[column.type])
    if kind > wanted:
        return pa.array(cast(numbers_of_texts(texts.to_pylist(), column), column), _TYPES[column.type])
    if wanted is ColumnType.INTEGER:
        return convert(texts, kind)
    values = convert(texts, ColumnType.FLOAT, pa.float64())
    return with_nulls(values, pc.fill_null(pc.is_nan(values), False))
