import io
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas
import pyarrow as pa
import pytest

from pipelines.data.formats.cell_format import CellFormat, TextFormat
from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.missing import is_missing
from pipelines.errors import BadInputError
from pipelines.serving.cells import CellError, cast, to_cells
from pipelines.serving.csv_columns import typed_columns
from pipelines.serving.saved_model import Column

COLUMNS = {
    "fare": Column("fare", "FLOAT"),
    "seconds": Column("seconds", "INT"),
    "company": Column("company", "BYTES"),
}


def test_cells_are_cast_to_the_types_of_the_columns():
    rows = [
        {"fare": 12, "seconds": 60.0, "company": "Čab"},
        {"fare": np.float32(0.5), "seconds": np.int32(7), "company": b"\xff"},
        {"fare": None, "company": None, "tips": "no column of the model"},
        {"fare": float("nan"), "seconds": float("nan"), "company": np.str_("a")},
    ]
    cells, num_rows = to_cells(rows, COLUMNS)
    assert num_rows == 4
    assert cells == {
        "fare": [12.0, 0.5, None, None],
        "seconds": [60, 7, None, None],
        "company": ["Čab".encode(), b"\xff", None, b"a"],
    }
    assert [type(cell) for cell in cells["seconds"][:2]] == [int, int]


DECIMALS = [Decimal("1.5"), Decimal(2), pandas.NA, pandas.NaT, Decimal("NaN")]


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("company", ["", b"", " ", np.str_(""), ["a", ""]], [None, None, b" ", None, [b"a", b""]]),
        ("fare", ["", 1, np.str_("")], [None, 1.0, None]),
        ("seconds", ["", 1.0], [None, 1]),
        ("fare", [[1, 2.5], [], np.array([3])], [[1.0, 2.5], None, [3.0]]),
        ("fare", [[None], [1]], [None, [1.0]]),
        ("fare", DECIMALS, [1.5, 2.0, None, None, None]),
        ("seconds", [Decimal(2), pandas.NA], [2, None]),
    ],
    ids=["text", "no number", "no whole number", "lists", "an empty list", "decimals", "a whole decimal"],
)
def test_which_values_are_missing_or_lists(column, values, expected):
    assert cast(values, COLUMNS[column]) == expected


def test_several_values_are_refused_where_the_model_takes_one():
    column = Column("fare", "FLOAT", takes_one=True)
    assert cast([[1], 2, [], np.array([3])], column) == [1.0, 2.0, None, 3.0]
    with pytest.raises(CellError, match=r"row 2, column 'fare': \[1, 2\] are several values"):
        cast([[1], [1, 2]], column)


def test_a_single_value_in_a_list_counts_as_the_value_where_the_model_takes_one():
    price = Column("price", "BYTES", takes_one=True, format=CellFormat(NumberFormat(",")))
    assert cast([[12.5], ["1,5"], [""], [None], (7,)], price) == [b"12,5", b"1,5", None, None, b"7"]
    fare = replace(COLUMNS["fare"], takes_one=True)
    assert cast([[None], [""], [float("nan")], np.array([np.nan])], fare) == [None] * 4
    with pytest.raises(CellError, match=r"\[\[12\]\] is not a number"):
        cast([[[12]]], fare)


def test_text_that_the_model_cannot_read_is_refused_unless_it_was_missing_in_training():
    prices = CellFormat(NumberFormat(","))
    values = ["1.234,56", None, "", "NA", b"7"]
    assert cast(values, Column("price", "BYTES", format=prices))[0] == b"1.234,56"
    with pytest.raises(
        CellError,
        match=r"row 6, column 'price': '262.12' cannot be read as a number; the column had numbers with "
        r"decimal commas in training. Use that format",
    ):
        cast([*values, "262.12"], Column("price", "BYTES", format=prices))
    with pytest.raises(CellError, match=r"row 1, .*'gestern' cannot be read as a date"):
        cast(["gestern"], Column("built", "BYTES", format=CellFormat(date="day-first")))
    tolerant = Column("price", "BYTES", format=replace(prices, missing=("VB",)))
    assert cast(["VB", "auf Anfrage"], tolerant) == [b"VB", b"auf Anfrage"]
    with pytest.raises(CellError, match=r"row 2, .*'262"):
        cast(["VB", "262.12"], tolerant)


def test_numbers_and_dates_are_taken_where_the_text_is_one():
    price = Column("price", "BYTES", format=CellFormat(NumberFormat(",")))
    assert cast([1.5, np.float64(2.5), np.float32(0.5), float("nan"), 7], price) == [
        b"1,5", b"2,5", b"0,5", None, b"7"
    ]  # fmt: skip
    built = Column("built", "BYTES", format=CellFormat(date="day-first"))
    frame = pandas.DataFrame({"built": pandas.to_datetime(["2024-04-06", None])})
    cells, _ = to_cells(frame, {"built": built})
    assert cells == {"built": [b"06.04.2024 00:00:00", None]}


def test_the_number_of_names_to_compare_can_be_limited():
    rows = [{"fare": 1, f"c{number}": 1} for number in range(4)]
    assert to_cells(rows, COLUMNS, 4 * 2)[1] == 4  # with `seconds` and `company`
    message = "have 4 columns that the model does not take, such as 'c0', and its column 'seconds' is"
    with pytest.raises(BadInputError, match=message):
        to_cells(rows, COLUMNS, 4 * 2 - 1)
    full = [{**row, "seconds": 1, "company": "a"} for row in rows]
    assert to_cells(full, COLUMNS, 0)[1] == 4  # with all columns there is nothing to compare


def test_rows_with_the_same_columns_in_any_order_are_checked_once():
    class CountingDict(dict):
        num_lookups = 0

        def __contains__(self, name):
            self.num_lookups += 1
            return super().__contains__(name)

    names = [f"x{number}" for number in range(50)]
    columns = CountingDict({name: Column(name, "FLOAT") for name in names})
    rotated = [{name: 1.0 for name in names[row:] + names[:row] if name != "x7"} for row in range(50)]
    assert to_cells(rotated, columns)[1] == 50
    assert columns.num_lookups < 10 * len(names)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("fare", "12.5", "'12.5' is not a number. Give a number without quotes"),
        ("fare", True, "True is not a number"),
        ("fare", {"a": 1}, "is not a number"),
        ("fare", [1, None], "is not a number"),
        ("fare", 10**400, "is not a number"),
        ("seconds", 12.5, "12.5 is not a whole number. .* round it"),
        ("seconds", 2**63, f"{2**63} is not a 64-bit integer.*Correct it"),
        ("seconds", 1e300, "1e.300 is not a 64-bit integer"),
        ("seconds", 2.0**60, "is beyond 2.53, where floats are not exact"),
        ("seconds", float("inf"), "inf is not a whole number"),
        ("seconds", False, "False is not a whole number"),
        ("seconds", Decimal("Infinity"), "is not a whole number"),
        ("company", 7, "7 is not text. Give the text of the CSV, in quotes"),
        ("company", True, "True is not text"),
        ("company", "\ud800", "is not text"),
    ],
)
def test_a_wrong_type_is_refused_with_row_column_value_and_fix(column, value, message):
    with pytest.raises(CellError, match=f"row 2, column '{column}': .*{message}") as raised:
        to_cells([{column: None}, {column: value}], COLUMNS)
    assert (raised.value.row, raised.value.column) == (1, column)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"fair": 1, "company": "a"}], "Unknown column 'fair', and the rows have no 'fare'"),
        ([{"tips": 1}], "None of the model's columns .* the model takes fare, seconds, company"),
        ([{}], "None of the model's columns"),
        ([{"fare": 1}, 7], "row 2 is not a dict of columns. Received: 7"),
        ("fare", "Rows are a list of dicts, .* Received: 'fare'"),
        (7, "Rows are a list of dicts"),
        ({"fare": [1], "seconds": [1, 2]}, "'fare' with 1, 'seconds' with 2"),
        ({"fare": np.array(7)}, r"column 'fare': a list .* \[\{\.\.\.\}\]"),
        ({"fare": 7}, "column 'fare': a list or an array is expected"),
        ({"fare": "seven"}, "column 'fare': a list or an array is expected"),
        ([{7: 1}], "A column's name must be text. Received: 7"),
        ([{"fare": 1}, {"fair": 2}], "Unknown column 'fair', and row 2 has no 'fare'"),
        (
            [{"fare": 1}, {"b64": "A"}],
            "None of the model's columns is given: row 2 has b64; the model takes fare, s",
        ),
        (pandas.DataFrame([[1.0, 2.0]], columns=["fare", "fare"]), "The column 'fare' appears 2 times"),
    ],
)
def test_what_are_no_rows_of_the_model_is_refused(rows, message):
    with pytest.raises(BadInputError, match=message):
        to_cells(rows, COLUMNS)


def test_a_similar_name_is_another_column_if_the_model_s_is_there_and_a_row_may_be_empty():
    assert to_cells([{"fare": 1}, {}], COLUMNS) == ({"fare": [1.0, None]}, 2)
    assert to_cells([{"fare": 1, "fares": "x"}], COLUMNS)[0] == {"fare": [1.0]}


FILE = """\
zip,plz,count,gap,amount,marked,vip,seen,city,day,at,price,comma,none
00501,01067,7,,1.5,NA,True,True,Oslo,20240406,2024-04-06,$1,"7,5",
12345,10115,8,3,,2.5,False,,NA,20240407,,"$1,234.50","1.234,5",
,10115,9,-4,2e3,-,True,False,,20240408,2024-12-31 07:08:09,,7,NA
"""
FILE_COLUMNS = {
    column.name: column
    for column in (
        Column("zip", "BYTES", text_format=TextFormat(width=5)),
        Column("plz", "BYTES", text_format=TextFormat(width=5)),
        Column("count", "INT"),
        Column("gap", "INT"),
        Column("amount", "FLOAT"),
        Column("marked", "BYTES", text_format=TextFormat(width=1, is_number=True)),
        Column("vip", "BYTES", text_format=TextFormat(booleans=("False", "True"))),
        Column("seen", "BYTES", text_format=TextFormat(booleans=("False", "True"))),
        Column("city", "BYTES"),
        Column("day", "INT"),
        Column("at", "BYTES", format=CellFormat(date="iso")),
        Column("price", "BYTES", format=CellFormat(NumberFormat(currency="USD"))),
        Column("comma", "BYTES", format=CellFormat(NumberFormat(","))),
        Column("none", "FLOAT"),
    )
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": str},
        {"dtype": "category"},
        {"keep_default_na": False},
        {"dtype_backend": "numpy_nullable"},
        {"dtype_backend": "pyarrow"},
        {"parse_dates": ["at"], "date_format": "mixed"},
    ],
    ids=str,
)
def test_a_frame_has_the_cells_of_its_file_whatever_types_pandas_infers(options):
    rows = pandas.read_csv(io.StringIO(FILE), dtype=str, keep_default_na=False)
    texts = {name: pa.array(rows[name]) for name in rows}
    expected, _ = typed_columns(texts, FILE_COLUMNS, len(rows))

    def known(cell):
        """A text that means "no value", for which pandas has no value, is the same to a model."""
        cell = None if isinstance(cell, bytes) and is_missing(cell.decode()) else cell
        return cell.removesuffix(b" 00:00:00") if isinstance(cell, bytes) else cell

    cells, num_rows = to_cells(pandas.read_csv(io.StringIO(FILE), **options), FILE_COLUMNS)
    assert num_rows == 3
    assert {name: list(map(known, column)) for name, column in cells.items()} == {
        name: list(map(known, column.to_pylist())) for name, column in expected.items()
    }


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "company",
            [None, 7],
            r"row 2, column 'company': 7.0 is not text.* read_csv\(\.\.\., dtype=str\) keeps",
        ),
        ("company", [True, False], r"row 1, .*True is not text.* dtype=str"),
        ("fare", ["1.5", "abc"], "row 2, .*'abc' is not a number, and the column had numbers in training"),
        ("seconds", ["12", "12.5"], "row 2, .*12.5 is not a whole number. .* round it"),
        ("seconds", [str(2**63)], f"{2**63} is not a 64-bit integer"),
    ],
)
def test_a_column_of_a_frame_that_does_not_fit_is_refused(column, values, message):
    with pytest.raises(CellError, match=message):
        to_cells(pandas.DataFrame({column: values}), COLUMNS)
