"""Inputs of a signature, made of cells."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import numpy as np
import tensorflow as tf

from pipelines.serving.cells import CellError, Cells, several
from pipelines.serving.saved_model import Column, Signature

MISSING: dict[str, Any] = {"INT": -(2**63), "FLOAT": float("nan"), "BYTES": b""}
"""Marks of a missing value in a tensor, by the type of the column."""
_LISTS: dict[str, Callable[[Any], Any]] = {
    "INT": attrgetter("int64_list"),
    "FLOAT": attrgetter("float_list"),
    "BYTES": attrgetter("bytes_list"),
}


def inputs_of(cells: Cells, signature: Signature, num_rows: int) -> dict[str, Any]:
    """Returns the inputs of a signature as NumPy arrays, by name."""
    if signature.takes_examples:
        (name,) = signature.inputs
        return {name: np.array(serialize(cells, signature.columns, num_rows), object)}
    return {
        name: _dense(cells.get(name), column, signature, num_rows)
        for name, column in signature.columns.items()
    }


def serialize(cells: Cells, columns: Mapping[str, Column], num_rows: int) -> list[bytes]:
    """Returns rows as serialized tf.Examples. A missing value is a feature that is not there."""
    given = [(name, _LISTS[columns[name].type], values) for name, values in cells.items()]
    examples = []
    for row in range(num_rows):
        example = tf.train.Example()
        feature = example.features.feature
        for name, list_of, values in given:
            value = values[row]
            if type(value) is list:
                list_of(feature[name]).value.extend(value)
            elif value is not None:
                list_of(feature[name]).value.append(value)
        examples.append(example.SerializeToString())
    return examples


def _dense(values: Any, column: Column, signature: Signature, num_rows: int) -> Any:
    """Returns a column with the mark of a missing value where there is none."""
    missing = MISSING[column.type]
    filled = [missing if value is None else value for value in values or [None] * num_rows]
    for row, value in enumerate(filled):
        if type(value) is list:
            raise CellError(row, column.name, several(value))
    tensor = signature.inputs[column.name]
    array = np.array(filled, object if column.type == "BYTES" else tensor.dtype.as_numpy_dtype)
    return array.reshape((num_rows, *(1 for _ in (tensor.shape or ())[1:])))
