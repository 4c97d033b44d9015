import random
import struct

import numpy as np
import pyarrow as pa
import pytest

from components.example_gen.cells import ColumnType, cell_type, convert, infer_type

EMPTY, INTEGER, FLOAT, TEXT = ColumnType

# By Python's `int` and `float` on bytes, which the second test calls.
TYPES = {
    "": EMPTY,
    **dict.fromkeys(["0", "-0", "007", "+5", " 7 ", "\t8", "1_000", "123456789012345678"], INTEGER),
    **dict.fromkeys(["9223372036854775807", "-9223372036854775808", "00000000000000000000012"], INTEGER),
    **dict.fromkeys(["9223372036854775808", "-9223372036854775809", "1" * 30], TEXT),
    **dict.fromkeys(["1.", ".5", "-.5", "00.5", "1e5", "1E+05", "+2.5", " 2.5\n", "1_0.5"], FLOAT),
    **dict.fromkeys(["nan", "NaN", "-nan", "inf", "-Infinity", "1e400", "1e-400", "1e99999"], FLOAT),
    **dict.fromkeys(["12345678901234567890.0", "12345678901234567890e1", "1" * 5000], FLOAT),
    **dict.fromkeys(["0x1A", "nan(1)", "1,5", "1e", "e5", ".", "-", "+", "--1", "1 2", "1__0"], TEXT),
    **dict.fromkeys(["true", "NA", "2020-01-01", "٣", "1\xa0", " ", "é", "1\0", "$1"], TEXT),
}


def strings(cells):
    return pa.array(cells, pa.string())


@pytest.mark.parametrize("cell", TYPES)
def test_a_column_of_one_cell_has_the_type_of_the_cell(cell):
    assert cell_type(cell) is TYPES[cell]
    assert infer_type(strings([cell])) is TYPES[cell]
    assert infer_type(strings(["", cell, "", cell])) is TYPES[cell]


@pytest.mark.parametrize("known", ColumnType)
def test_a_column_has_the_type_that_holds_all_cells(known):
    cells = [*TYPES]
    draw = random.Random(1)
    for _ in range(300):
        some = draw.choices(cells, k=draw.randrange(1, 4))
        expected = max(known, *(TYPES[cell] for cell in some))
        assert infer_type(strings(some), known) is expected, some
    assert infer_type(strings([]), known) is known


def test_integers_are_those_of_python():
    cells = [cell for cell, found in TYPES.items() if found in (INTEGER, EMPTY)]
    assert convert(strings(cells), INTEGER).to_pylist() == [int(cell) if cell else None for cell in cells]
    assert convert(strings(cells), INTEGER).type == pa.int64()


def test_floats_are_those_of_python_to_the_last_bit():
    draw = random.Random(2)
    cells = [cell for cell, found in TYPES.items() if found in (FLOAT, INTEGER, EMPTY)]
    cells += [repr(draw.uniform(-1, 1) * 10 ** draw.randrange(-50, 45)) for _ in range(2_000)]
    # Halfway between two float32, but for a digit that float64 does not hold: rounded twice, as by Python.
    cells += ["1.00000017881393432617187499999999", "1.00000017881393421514957253748434"]
    found = convert(strings(cells), FLOAT)
    assert found.type == pa.float32()
    assert [value.as_py() is None for value in found] == [cell == "" for cell in cells]
    # "f" refuses what is too large, so NumPy rounds.
    with np.errstate(over="ignore"):
        expected = [np.float64(float(cell)).astype("<f4").tobytes() for cell in cells if cell]
    values = found.drop_null().to_numpy()
    assert [struct.pack("<I", bits) for bits in values.view(np.uint32)] == expected


def test_text_is_kept_as_it_is_and_a_column_without_values_is_null():
    cells = [*TYPES]
    found = convert(strings(cells), TEXT)
    assert found.type == pa.binary()
    assert found.to_pylist() == [cell.encode() or None for cell in cells]
    assert convert(strings(["", ""]), EMPTY).equals(pa.nulls(2))


def test_a_part_of_an_array_has_the_same_values():
    draw = random.Random(5)
    for found in (INTEGER, FLOAT, TEXT):
        cells = [cell for cell in TYPES if TYPES[cell] <= found and "nan" not in cell.lower()]
        draw.shuffle(cells)
        whole = convert(strings(cells), found)
        for begin in range(12):
            size = draw.randrange(len(cells))
            part = strings(cells).slice(begin, size)
            assert convert(part, found).equals(whole.slice(begin, size))
            assert infer_type(part) is infer_type(strings(cells[begin : begin + size]))
