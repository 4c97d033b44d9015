import re

import pytest

from pipelines.data.dialect import Dialect
from pipelines.data.formats.number_format import COMMA, POINT, NumberFormat
from pipelines.data.kinds import recognise_columns, text_columns, to_date_format
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError
from tests.pipelines.data.tables import write_table


def kinds_of(folder, columns, given=None, **settings):
    profile = profile_csv([write_table(folder, columns, ";")], Dialect(";"))
    return recognise_columns(profile, given or {}, **settings)


NUM = 150
COLUMNS = {
    "money": [f"${number},{number % 10}00.50" for number in range(1, NUM + 1)],
    "share": [f"0,{number % 97 + 10}" for number in range(NUM)],
    "percent": [f"{number % 90}%" for number in range(NUM)],
    "ordered_at": [f"2014-03-{number % 28 + 1:02d} 12:{number % 60:02d}" for number in range(NUM)],
    "when": [1_400_000_000 + 7 * number for number in range(NUM)],
    "created": [1_400_000_000 + 7_001 * number for number in range(NUM)],
    "vip": ["Yes", "no"] * (NUM // 2),
    "flag": ["true", "false"] * (NUM // 2),
    "zip": [f"{number % 9:05d}" for number in range(NUM)],
    "note": [f"it came {number} days late" for number in range(NUM)],
    "uuid": [f"u{number}" for number in range(NUM)],
    "row": range(NUM),
    "same": ["x"] * NUM,
    "gone": [""] * NUM,
    "city": ["Oslo", "Rome", "Bonn"] * (NUM // 3),
    "size": [number * 0.37 for number in range(NUM)],
}


def test_what_each_column_is_taken_for(tmp_path):
    kinds = kinds_of(tmp_path, COLUMNS)
    assert {name: kind.name for name, kind in kinds.items()} == {
        "money": "number", "share": "number", "percent": "number", "ordered_at": "date",
        "when": "number", "created": "date", "vip": "boolean", "flag": "boolean",
        "zip": "category", "note": "text", "uuid": "id", "row": "id", "same": "constant",
        "gone": "empty", "city": "category", "size": "number",
    }  # fmt: skip
    assert kinds["money"].number_format == NumberFormat(".", "USD")
    assert (kinds["share"].number_format, kinds["size"].number_format) == (COMMA, None)
    assert to_date_format(kinds["created"]).name == "epoch-seconds"
    assert to_date_format(kinds["size"]) is None
    assert kinds["vip"].words == ("yes", "no")
    assert text_columns(kinds) == ("zip",)
    assert not any(kind.doubt for kind in kinds.values())


def test_the_configuration_goes_first(tmp_path):
    given = {"zip": "number", "when": "date", "city": "text", "size": "category", "uuid": "category",
             "note": "ignore", "vip": "category"}  # fmt: skip
    kinds = kinds_of(tmp_path, COLUMNS, given)
    assert {name: kinds[name].name for name in given} == {
        "zip": "number", "when": "date", "city": "text", "size": "category", "uuid": "category",
        "note": "id", "vip": "boolean",
    }  # fmt: skip
    assert all(kinds[name].is_given for name in given)
    assert not kinds["row"].is_given
    assert text_columns(kinds) == ()
    for use, message in (
        ({"city": "number"}, r"city = \"number\": .*data\.csv, line 2: 'Oslo' is not a number"),
        ({"city": "date"}, r"no format fits all 150 cells, such as .*line 2: 'Oslo'"),
        ({"none": "text"}, r"none = 'text': there is no such column\. Columns: money, "),
    ):
        with pytest.raises(BadInputError, match=message):
            kinds_of(tmp_path, COLUMNS, use)


def test_one_comma_before_three_digits_is_decided_by_the_other_columns(tmp_path):
    column = {"a": ["1,234", "5,678"] * 10}
    alone = kinds_of(tmp_path, column)["a"]
    assert (alone.number_format, alone.moments.mean) == (POINT, 3456)
    assert alone.note == "thousands separated by commas; decimal mark not certain"
    assert "line 2: '1,234' is a decimal mark: set data.decimal" in alone.doubt
    beside = kinds_of(tmp_path, {**column, "b": ["1,5", "2,5"] * 10})["a"]
    assert (beside.number_format, beside.doubt) == (COMMA, None)
    assert beside.moments.mean == pytest.approx(3.456)
    told = kinds_of(tmp_path, column, decimal=",")["a"]
    assert (told.number_format, told.doubt) == (COMMA, None)


@pytest.mark.parametrize(
    ("others", "is_told"),
    [
        (["1.5", "2.25", "unknown"], True),
        (["1.5 kg", "2.5 kg", "3.5 cm"], True),
        (["1.234", "5.678", "unknown"], False),
        (["1,5", "2,25", "unknown"], False),  # no number: too little to read $4,427 as 4.427
        (["v1.5", "v2.5", "v3.5"], False),
    ],
)
def test_a_decimal_point_decides_also_in_a_column_that_is_no_number(tmp_path, others, is_told):
    kinds = kinds_of(tmp_path, {"a": ["$4,427", "$1,234", "$5,678"] * 10, "b": others * 10})
    assert kinds["b"].name == "category"
    assert kinds["a"].moments.mean == pytest.approx((4427 + 1234 + 5678) / 3)
    assert (kinds["a"].doubt is None) == is_told


def test_thousands_that_look_like_fractions_stay_text(tmp_path):
    columns = {"a": ["1.234", "5.678"] * 10, "b": ["1,5", "2,5"] * 10}
    kinds = kinds_of(tmp_path, columns)
    assert (kinds["a"].number_format, kinds["a"].moments.mean) == (COMMA, 3456)
    assert text_columns(kinds) == ("a",)
    plain = kinds_of(tmp_path, {"a": columns["a"]})["a"]
    assert (plain.name, plain.number_format, plain.keeps_text) == ("number", None, False)


def test_dates_that_may_be_either_are_not_used_until_it_is_said(tmp_path):
    columns = {"a": ["01/02/2014", "03/04/2014"] * 10}
    kind = kinds_of(tmp_path, columns)["a"]
    assert (kind.name, kind.moments) == ("date", None)
    assert "line 2: '01/02/2014'" in kind.doubt
    assert "Set data.dates" in kind.doubt
    assert kinds_of(tmp_path, columns, dates="month-first")["a"].date_format == "month-first"
    with pytest.raises(BadInputError, match="no row shows whether the day or the month is first"):
        kinds_of(tmp_path, columns, {"a": "date"})


def test_epoch_seconds_with_fractions_stay_text(tmp_path):
    # float32 holds 24 bits: it would round 1,400,000,001.5 to 128 seconds.
    kinds = kinds_of(tmp_path, {"time": [f"{1_400_000_000 + number}.5" for number in range(30)]})
    assert (kinds["time"].name, kinds["time"].keeps_text) == ("date", True)


def test_numbers_that_are_stored_as_text_are_noted(tmp_path):
    numbers = [f"{number}.5" for number in range(40)]
    kind = kinds_of(tmp_path, {"a": [*numbers, "\u22123"]})["a"]
    assert (kind.name, kind.moments.num_unreadable) == ("number", 0)
    assert "'a' is stored as text: 1 of 41 values is not a plain number" in kind.doubt
    codes = [f"{number:05d}" for number in range(11, 51)]
    kind = kinds_of(tmp_path, {"zip": [*codes, "K1A"]})["zip"]
    assert (kind.name, kind.moments) == ("category", None)
    assert kind.doubt.endswith(
        "line 42: 'K1A'. If such a cell stands for a missing value, leave it empty; if it is a mistake, "
        "correct it"
    )


@pytest.mark.parametrize(
    ("cells", "odd", "said"),
    [
        ([f"${number},000.50" for number in range(1, 100)], "free", "is not such a number"),
        ([f"0,{number:02d}" for number in range(1, 100)], "0.5.1", "is not such a number"),
        ([f"{number} kg" for number in range(1, 100)], "7 m", "is not such a number"),
        ([f"€{number}M" for number in range(1, 100)], "$2M", "is not such a number"),
        ([f"2014-03-{number % 28 + 1:02d}" for number in range(1, 100)], "soon", "is not such a date"),
        ([f"2014Q{number % 4 + 1}" for number in range(1, 100)], "2014Q5", "is not such a date"),
    ],
)
def test_a_few_cells_that_cannot_be_read_count_as_missing_and_are_named(tmp_path, cells, odd, said):
    kind = kinds_of(tmp_path, {"a": [*cells, odd]})["a"]
    assert kind.name == ("date" if "date" in said else "number")
    assert kind.moments.num_unreadable == 1
    assert kind.note.endswith("; 1 of 100 cells counts as missing")
    assert f"; 1 of 100 cells {said} and counts as missing, the first: " in kind.doubt
    assert f"line 101: {odd!r}. If such a cell stands for a missing value, leave it" in kind.doubt
    many = [*cells, *cells, *[odd] * 10]
    text = kinds_of(tmp_path, {"a": many})["a"]
    assert (text.name, text.doubt) == ("category", None)
    with pytest.raises(BadInputError, match=rf"line 200: '{re.escape(odd)}'"):
        kinds_of(tmp_path, {"a": many}, {"a": kind.name})


@pytest.mark.parametrize(
    ("cells", "use", "said"),
    [
        (["2015-02-28", "2015-02-30"] * 20, "date", "line 3: '2015-02-30' (40 are iso)"),
        ([18000101, 18000102] * 20, "date", "line 2: '18000101'"),
        (["5 kg", "soon"] * 20, "date", "line 2: '5 kg'"),
        (["5 kg", "6 kg", "soon"] * 20, "number", "line 4: 'soon' is not a number, nor are 19 others"),
        (["true", "false"] * 20, "number", "line 2: 'true' is not a number"),
        (["a", "b"] * 20, "list", 'no cell has a ";", "|" or "," between parts'),
    ],
)
def test_a_configured_kind_that_does_not_fit_names_the_cells_that_resist(tmp_path, cells, use, said):
    with pytest.raises(BadInputError, match=re.escape(said)):
        kinds_of(tmp_path, {"a": cells}, {"a": use})


@pytest.mark.parametrize("name", ["product_id", "code", "postcode"])
def test_codes_by_their_name_have_no_unit(tmp_path, name):
    cells = [f"{number}AB" for number in range(1000, 1030)]
    kinds = kinds_of(tmp_path, {name: cells, "weight": cells})
    assert (kinds[name].name, kinds["weight"].name) == ("category", "number")


def test_codes_phone_numbers_and_serial_numbers_are_no_numbers(tmp_path):
    cells = [f"601 {number} {999 - number}" for number in range(200, 240)]
    kinds = kinds_of(tmp_path, {"phone": cells, "population": cells})
    assert (kinds["phone"].name, kinds["population"].name) == ("text", "number")
    cells = [f"{number}AB" for number in range(1000, 1150)]
    weights = [f"{number}.5 AB" for number in range(1000, 1150)]
    kinds = kinds_of(tmp_path, {"sku": cells, "weight": weights})
    assert (kinds["sku"].name, kinds["weight"].name) == ("id", "number")
    cells = [f"0{number % 10}:{number % 60:02d}" for number in range(99)]
    kind = kinds_of(tmp_path, {"a": [*cells, "soon"]})["a"]
    assert (kind.name, kind.moments.num_unreadable) == ("number", 1)
    kind = kinds_of(tmp_path, {"a": [*range(1, 99), "--5"]})["a"]
    assert (kind.name, kind.moments.num_unreadable, kind.moments.minimum) == ("number", 1, 1)
    cells = [f"{year}-{month:02d}" for year in (2015, 2016) for month in range(1, 13)]
    for given in ({}, {"a": "date"}):
        kind = kinds_of(tmp_path, {"a": cells}, given)["a"]
        assert (kind.name, kind.date_format) == ("date", "month")


def test_lists_are_lists_unless_configured(tmp_path):
    columns = {"a": ["x|y", "y", "z|x|y"] * 10, "b": ["p, q", "q"] * 15}
    kinds = kinds_of(tmp_path, columns)
    assert (kinds["a"].name, kinds["b"].name) == ("list", "category")
    assert kinds["a"].list_parts.parts == ("y", "x", "z")
    kinds = kinds_of(tmp_path, columns, {"a": "category", "b": "list"})
    assert (kinds["a"].name, kinds["b"].list_parts.parts) == ("category", ("q", "p"))


def test_a_column_of_fractions_with_many_words_says_why_it_is_no_number(tmp_path):
    words, rooms = ["unknown"] * 10, ["12", "14a"] * 50
    columns = {
        "weight": [*words, *(f"{n}.5" for n in range(90))],
        "room": rooms,  # whole numbers may be names of something
        "y": range(100),
    }
    kinds = kinds_of(tmp_path, columns)
    assert (kinds["weight"].name, kinds["room"].name) == ("category", "category")
    assert kinds["room"].note == ""
    assert kinds["weight"].note == (
        "not read as numbers: 10 of 100 cells do not fit the numbers in the other cells, the first: "
        f"{tmp_path}/data.csv, line 2: 'unknown'"
    )
