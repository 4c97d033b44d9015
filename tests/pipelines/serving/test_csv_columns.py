import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf

import pipelines
from pipelines.serving.cells import CellError
from pipelines.serving.csv_columns import inputs_of_columns, typed_columns
from pipelines.serving.model import signature_inputs
from pipelines.serving.saved_model import SERVING_ROWS, Column, Signature, Tensor

COLUMNS = {"n": Column("n", "INT"), "x": Column("x", "FLOAT"), "city": Column("city", "BYTES")}
TEXTS = {
    "n": ["12", "12.0", "", "NA", " 3 ", "-9223372036854775808", "9007199254740993"],
    "x": ["10.08", "9007199254740993", "", "NAN", "inf", " .5", "1_000"],
    "city": ["Oslo", "NA", "", " a ", "\u00fc", "nan", "0"],
}
CELLS = {
    "n": [12, 12, None, None, 3, -(2**63), 2**53 + 1],
    "x": [10.08, 9007199254740992.0, None, None, float("inf"), 0.5, 1000.0],
    "city": [b"Oslo", b"NA", None, b" a ", "\u00fc".encode(), b"nan", b"0"],
}


def arrays(texts):
    return {name: pa.array(cells) for name, cells in texts.items()}


def test_cells_have_the_types_of_the_model_and_floats_all_their_digits():
    found, _ = typed_columns(arrays(TEXTS), COLUMNS, 7)
    assert {name: array.to_pylist() for name, array in found.items()} == CELLS
    assert [array.type for array in found.values()] == [pa.int64(), pa.float64(), pa.binary()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("signature", ["serving_default", SERVING_ROWS])
@pytest.mark.parametrize("given", [("n", "x", "city"), ("x",), ()])
def test_the_inputs_are_those_of_cells(push, signature, given):
    known = pipelines.load(push("regressor", 1)).signatures[signature]
    found, _ = typed_columns(arrays({name: TEXTS[name] for name in given}), known.columns, 7)
    ours = inputs_of_columns(found, known, 7)
    theirs = signature_inputs({name: CELLS[name] for name in given}, known, 7)
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        if signature == SERVING_ROWS:
            assert ours[name].dtype == expected.dtype
            np.testing.assert_array_equal(ours[name], expected)
        else:
            assert [read(row) for row in ours[name]] == [read(row) for row in expected]


def read(example):
    """The values of a tf.Example by name."""
    import tensorflow as tf

    features = tf.train.Example.FromString(example).features.feature
    lists = {
        name: one.int64_list.value or one.float_list.value or one.bytes_list.value
        for name, one in features.items()
    }
    return {name: list(values) for name, values in lists.items()}


@pytest.mark.parametrize(
    ("column", "cells", "row", "message"),
    [
        ("n", ["1", "", "2.5"], 2, "2.5 is not a whole number"),
        ("n", ["1", "9223372036854775808"], 1, "9223372036854775808 is not a 64-bit integer"),
        ("n", ["1", "12,5"], 1, "'12,5' is not a whole number, and the column had whole numbers"),
        ("x", ["1", "two"], 1, "'two' is not a number"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(column, cells, row, message):
    with pytest.raises(CellError, match=message) as caught:
        typed_columns(arrays({column: cells}), COLUMNS, len(cells))
    assert (caught.value.row, caught.value.column) == (row, column)


def test_a_value_that_the_model_needs_is_asked_for():
    needed = {"x": Column("x", "FLOAT", is_required=True)}
    with pytest.raises(CellError, match="there is no value") as caught:
        typed_columns(arrays({"x": ["1", "NA"]}), needed, 2)
    assert caught.value.row == 1
    with pytest.raises(CellError, match="there is no value"):
        typed_columns({}, needed, 2)


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"),
    [(tf.int32, -(2**31), 2**31 - 1), (tf.uint8, 0, 255), (tf.int64, -(2**63), 2**63 - 1)],
)
def test_a_whole_number_that_the_type_of_an_input_cannot_hold_is_refused(dtype, lowest, highest):
    column = Column("n", "INT", is_required=True, takes_one=True)
    inputs = {"n": Tensor("n", dtype, (None,))}
    signature = Signature("serving_default", "predict", inputs, {}, {"n": column}, False, None)

    def of_cells(numbers):
        return signature_inputs({"n": numbers}, signature, len(numbers))

    def of_file(numbers):
        return inputs_of_columns({"n": pa.array(numbers, pa.int64())}, signature, len(numbers))

    for made in (of_cells, of_file):
        assert made([lowest, highest])["n"].tolist() == [lowest, highest]
        for number in {lowest - 1, highest + 1} if dtype.size < 8 else ():
            with pytest.raises(CellError, match=f"^row 2, column 'n': {number} is beyond {dtype.name}, the"):
                made([1, number])
