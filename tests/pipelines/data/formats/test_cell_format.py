import datetime
import json

import numpy as np
import pyarrow as pa
import pytest

from pipelines.data.formats.cell_format import (
    FILE,
    TEXT_FILE,
    CellFormat,
    TextFormat,
    find_parsed_columns,
    format_of_column,
    formats_to_json,
    parse_cells,
    read_formats,
    read_text_formats,
)
from pipelines.data.formats.number_format import COMMA, NumberFormat

EUROS = CellFormat(NumberFormat(",", currency="EUR"))
ZIP = TextFormat(width=5)
CODE = TextFormat(width=1)
ANY_NUMBER = TextFormat(width=1, is_number=True)
TRUTH = TextFormat(booleans=("no", "yes"))
BERLIN = datetime.timezone(datetime.timedelta(hours=2))
READ = {
    CellFormat(COMMA): ["1.234,56", "262,12", "-5", "(3,5)", "1e3", " 7 ", "", "NA"],
    EUROS: ["1.234,56 EUR", "€ 3"],
    CellFormat(NumberFormat(unit="kg")): ["12 kg", "0"],
    CellFormat(NumberFormat(clock="h:mm")): ["01:30", "1 day, 2:03:04"],
    CellFormat(date="day-first"): ["27.02.1956", "29.02.2020 12:30", "?"],
    CellFormat(date="month-name"): ["Mar 2015", "sept. 2016"],
    CellFormat(date="quarter"): ["Q3 2015", "2015Q1"],
    CellFormat(date="week"): ["2015-W53", "2016W07-3"],
    CellFormat(date="epoch-seconds"): ["1400000000", "1.4e9"],
}
NOT_READ = {
    CellFormat(COMMA): ["262.12", "teuer", "1.23,4", "12 kg"],
    EUROS: ["$ 3"],
    CellFormat(NumberFormat(unit="kg")): ["12", "12 lb"],
    CellFormat(NumberFormat(clock="h:mm")): ["1:60", "noon"],
    CellFormat(date="day-first"): ["gestern", "29.02.2021", "31.04.2020", "2020-01-02"],
    CellFormat(date="month-name"): ["March", "2015-03"],
    CellFormat(date="quarter"): ["Q5 2015"],
    CellFormat(date="week"): ["2016-W53", "2016W07-8"],
    CellFormat(date="epoch-seconds"): ["today"],
}
CASES = [(one, cell, True) for one, cells in READ.items() for cell in cells]
CASES += [(one, cell, False) for one, cells in NOT_READ.items() for cell in cells]


@pytest.mark.parametrize(("cell_format", "cell", "expected"), CASES)
def test_a_cell_is_read_or_not(cell_format, cell, expected):
    assert cell_format.reads(cell) is expected
    if cell not in ("", "NA", "?"):
        assert cell_format.is_read(pa.array([cell.strip()])).tolist() == [expected]


def test_formats_are_written_and_read(tmp_path):
    formats = {"a": EUROS, "b": CellFormat(date="week", missing=("?!",))}
    assert read_formats(tmp_path) == {}
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / FILE).write_text(formats_to_json(formats))
    assert read_formats(tmp_path) == formats


def test_formats_of_other_texts_are_in_a_separate_file(tmp_path):
    formats = {"a": ZIP, "b": TRUTH, "c": ANY_NUMBER}
    assert read_text_formats(tmp_path) == {}
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / TEXT_FILE).write_text(formats_to_json(formats))
    assert (read_text_formats(tmp_path), read_formats(tmp_path)) == (formats, {})
    (tmp_path / "assets.extra" / TEXT_FILE).write_text('{"a": {"width": 5}}')
    with pytest.raises(ValueError, match=r"text_formats.json cannot be read"):
        read_text_formats(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"a": {"number": null}}', '{"a": 7}'])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / FILE).write_text(content)
    with pytest.raises(ValueError, match=r"cell_formats.json cannot be read"):
        read_formats(tmp_path)


@pytest.mark.parametrize(
    ("cell_format", "words"),
    [
        (EUROS, "amounts of money (EUR) with decimal commas"),
        (CellFormat(NumberFormat(unit="kg")), "numbers in kg"),
        (CellFormat(NumberFormat(scale="multiples")), "numbers with multiples such as K and M"),
        (CellFormat(date="day-first"), "dates (day first)"),
    ],
)
def test_a_format_is_described(cell_format, words):
    assert cell_format.describe() == words
    assert json.loads(formats_to_json({"a": cell_format}))["a"]["missing"] == []


def test_cells_that_were_missing_in_the_training_are_and_others_without_a_digit():
    prices = CellFormat(NumberFormat(",", currency="EUR"), missing=("auf Anfrage", "1.2.3"))
    assert all(map(prices.reads, ["auf Anfrage", " 1.2.3 ", "VB", "1,5"]))
    assert not any(map(prices.reads, ["869.35", "$869", "1.2.4"]))
    assert not EUROS.reads("VB")


@pytest.mark.parametrize(
    ("cell_format", "value", "text"),
    [
        (CellFormat(COMMA), 290844.21, "290844,21"),
        (CellFormat(COMMA), -3, "-3"),
        (CellFormat(COMMA), 1e-7, "1e-07"),
        (EUROS, 12.5, "12,5"),
        (CellFormat(NumberFormat(unit="kg")), 12.5, "12.5 kg"),
        (CellFormat(NumberFormat(scale="multiples")), 1500, "1500"),
        (CellFormat(date="day-first"), datetime.date(2024, 4, 6), "06.04.2024"),
        (CellFormat(date="iso"), datetime.datetime(2024, 4, 6, 7, 8, 9), "2024-04-06 07:08:09"),
        (CellFormat(date="month-first"), datetime.date(2024, 4, 6), "04/06/2024"),
        (CellFormat(date="compact"), datetime.date(2024, 4, 6), "20240406"),
        (
            CellFormat(date="iso"),
            datetime.datetime(2024, 4, 6, 7, 8, tzinfo=BERLIN),
            "2024-04-06 07:08:00+0200",
        ),
    ],
)
def test_a_number_or_a_date_is_written_as_the_cells_are(cell_format, value, text):
    assert cell_format.written(value) == text
    assert cell_format.reads(text)


@pytest.mark.parametrize(
    ("cell_format", "value"),
    [
        (CellFormat(COMMA), True),
        (CellFormat(COMMA), "1,5"),
        (CellFormat(NumberFormat(scale="length")), 5.0),  # of an unknown unit
        (CellFormat(NumberFormat(clock="h:mm")), 5.0),
        (CellFormat(date="day-first"), 5.0),
        (CellFormat(date="week"), datetime.date(2024, 4, 6)),
    ],
)
def test_what_has_no_one_way_to_be_written_stays(cell_format, value):
    assert cell_format.written(value) is value


@pytest.mark.parametrize(
    ("text_format", "value", "text"),
    [
        (ZIP, 501, "00501"),
        (ZIP, np.float64(501), "00501"),
        (ZIP, 123456, "123456"),
        (CODE, -7.0, "-7"),
        (CODE, 2**63 - 1, "9223372036854775807"),
        (ANY_NUMBER, 7.25, "7.25"),
        (ANY_NUMBER, 20240406.0, "20240406"),
        (TRUTH, np.True_, "yes"),
        (TRUTH, False, "no"),
    ],
)
def test_a_number_or_a_boolean_is_written_as_the_text_of_the_training(text_format, value, text):
    assert text_format.written(value) == text


@pytest.mark.parametrize(
    ("text_format", "value"),
    [
        (ZIP, -5),
        (ZIP, 5.5),
        (ZIP, 2.0**60),
        (ZIP, True),
        (ZIP, "5"),
        (TRUTH, 1),
        (ANY_NUMBER, float("nan")),
    ],
)
def test_what_the_training_does_not_tell_stays(text_format, value):
    assert text_format.written(value) is value


def test_cells_are_parsed_as_the_model_reads_them_and_dates_into_days_and_hours():
    cells = pa.array([" 1.234,50 € ", "12", "NA", "$3", ""])
    parsed = EUROS.parse(cells)
    assert list(parsed) == ["numbers"]
    np.testing.assert_array_equal(parsed["numbers"], [1234.5, 12, np.nan, np.nan, np.nan])
    iso = CellFormat(date="iso")
    parsed = iso.parse(pa.array(["1970-01-03T02:30:00+05:00", "1970-02-30", "1970-01-01"]))
    # 02:30 is 21:30 of the day before in UTC: 1 + 21.5 / 24 days after 1970-01-01.
    np.testing.assert_allclose(parsed["days"], [1 + 21.5 / 24, np.nan, 0])
    np.testing.assert_allclose(parsed["hours"], [2.5, np.nan, 0])
    assert list(iso.parse(pa.array(["1970-01-03", "later"]))) == ["days"]


def test_the_columns_to_parse_have_the_format_of_their_own_plan_first():
    number = {"name": "price", "number_format": {"decimal": ",", "currency": "EUR"}}
    date = {"name": "price", "number_format": None, "date_format": "iso"}
    text = {"name": "city", "number_format": None, "date_format": None}
    gone = {"name": "gone", "number_format": {"decimal": ","}}
    parsed = find_parsed_columns([number, text], [date, gone])
    assert {name: [*formats] for name, formats in parsed.formats.items()} == {
        "price": [EUROS.describe(), "dates (iso)"],
        "gone": ["numbers with decimal commas"],
    }
    fields = parsed.formats["price"][EUROS.describe()]
    assert parsed.parse_fn == f"{parse_cells.__module__}.parse_cells"
    assert parse_cells(pa.array(["1,5 €"]), fields)["numbers"].tolist() == [1.5]
    assert format_of_column(text) is None
