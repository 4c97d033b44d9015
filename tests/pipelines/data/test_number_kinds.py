import numpy as np
import pytest

from pipelines.data.column_cells import ColumnCells
from pipelines.data.dialect import Dialect
from pipelines.data.formats.number_format import COMMA, POINT, NumberFormat
from pipelines.data.number_kinds import compute_moments, describe_format, find_formats, mark_of_file, measure
from pipelines.data.profile import profile_csv
from tests.pipelines.data.tables import write_table

MONEY = NumberFormat(".", "USD")


def profile_of(folder, **columns):
    return profile_csv([write_table(folder, columns, ";")], Dialect(";"))


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        (["$1.50", "2"], (NumberFormat(".", "USD"),)),
        (["1,5", "2"], (COMMA,)),
        (["1,234", "5,678"], (POINT, COMMA)),
        (["1,234", "5,67"], (COMMA,)),
        (["1,234", "5,678,901"], (POINT,)),
        (["1,234", "5,678.9"], (POINT,)),
        (["1,5", "2.5"], ()),
        (["a", "1"], ()),
    ],
)
def test_all_cells_decide_on_the_format(tmp_path, cells, formats):
    profile = profile_of(tmp_path, a=cells)
    assert find_formats(ColumnCells(profile, "a")).formats == formats


def many(*texts):
    """Returns 100 cells, with the numbers 1 to 25 in place of `#`."""
    return [text.replace("#", str(number)) for number in range(1, 26) for text in texts * 4][:100]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["€#.5M", "€#K", "€0"], NumberFormat(".", "EUR", scale="multiples")),
        (["#K", "#m"], NumberFormat(scale="multiples")),
        (["#m"], NumberFormat(unit="m")),  # million, metres or minutes: nothing to convert
        (["£#m"], NumberFormat(currency="GBP", scale="multiples")),
        (["#M"], NumberFormat(scale="multiples")),
        (["#,5 bn", "#,25 bn"], NumberFormat(",", scale="multiples")),
        (["# kg", "#,000.5 kg"], NumberFormat(unit="kg")),
        (["# kg", "# lbs"], NumberFormat(scale="mass")),
        (["# day", "# days"], NumberFormat(unit="day")),
        (["# days", "# weeks"], NumberFormat(scale="time")),
        (["#d", "#m"], None),  # minutes or months
        (["#w #m", "#w", "#m"], None),
        (["#d #m", "#h"], NumberFormat(scale="time")),
        (["#d", "#min"], NumberFormat(scale="time")),
        (["# months", "# years"], NumberFormat(scale="calendar")),
        (["# h # m", "# h", "# m"], NumberFormat(scale="time")),
        (["#'1\"", "#'11\""], NumberFormat(scale="length")),
        (["#'1", "#'11"], NumberFormat(scale="length")),
        (["#:10:20", "#:11:30"], NumberFormat(clock="h:mm")),
        (["5:10", "#:11:30"], NumberFormat(clock="m:ss")),
        (["25:10", "1:11"], NumberFormat(clock="m:ss")),
        (["$# per month"], NumberFormat(currency="USD", unit="per month")),
        (["#%", "# %"], POINT),
        (["#B"], NumberFormat(unit="B")),
        (["# mm"], NumberFormat(unit="mm")),
        (["# mm", "# m"], NumberFormat(scale="length")),
        (["$#mm"], NumberFormat(currency="USD", scale="multiples")),
        (["# cr"], NumberFormat(unit="cr")),
        (["# cr", "# lac"], NumberFormat(scale="multiples")),
        (["# TEUR", "# EUR"], None),  # thousands, not trillions
        (["€#T"], NumberFormat(currency="EUR", scale="multiples")),
        (["#pm"], None),  # 12 pm is before 5 pm
        (["# a.m."], None),
        (["$#", "€#"], None),  # two currencies
        (["# kmpl", "# km/kg"], None),  # nothing converts them
        (["# kg", "# cm"], None),
        (["# kg", "#"], None),
        (["0# kg"], None),  # leading zeros
        (["#st", "#nd", "#th"], None),
        (["# Main Street", "# Elm Street"], None),
        (["x#"], None),
    ],
)
def test_units_and_currencies_of_a_column(tmp_path, cells, expected):
    profile = profile_of(tmp_path, a=many(*cells))
    found = find_formats(ColumnCells(profile, "a"))
    assert found.formats[:1] == ((expected,) if expected else ())
    if expected:
        assert found.num_misfits == 0


@pytest.mark.parametrize("letter", ["A", "B", "K", "M", "T", "b"])
def test_a_rare_letter_behind_a_house_number_does_not_multiply_it(tmp_path, letter):
    cells = [*map(str, range(1, 99)), f"12{letter}"]
    found = find_formats(ColumnCells(profile_of(tmp_path, a=cells), "a"))
    assert (found.best, found.num_misfits) == (POINT, 1)


@pytest.mark.parametrize("cell", ["1.2K", "1,5M", "3 bn", "$2m"])
def test_a_rare_multiple_multiplies(tmp_path, cell):
    cells = [*map(str, range(1, 99)), cell]
    found = find_formats(ColumnCells(profile_of(tmp_path, a=cells), "a"))
    assert (found.best.scale, found.num_misfits) == ("multiples", 0)


def test_a_few_cells_may_not_fit(tmp_path):
    cells = many("$#")
    for num_odd, formats in ((2, (MONEY,)), (3, ())):
        profile = profile_of(tmp_path, a=[*cells[num_odd:], *["free"] * num_odd])
        found = find_formats(ColumnCells(profile, "a"))
        assert (found.formats[:1], found.best, found.num_misfits) == (formats, MONEY, num_odd)
    profile = profile_of(tmp_path, a=[*cells[:10], "free"])  # too few to tell
    assert find_formats(ColumnCells(profile, "a")).formats == ()


@pytest.mark.parametrize(
    ("columns", "mark"),
    [
        ({"a": ["1,5", "2"], "b": ["1,234", "5,678"]}, ","),
        ({"a": ["$1.5", "2"], "b": ["1,234", "5,678"]}, "."),
        ({"a": ["1.5", "2"], "b": ["1,234", "5,678"]}, "."),
        ({"a": ["1,5", "2"], "b": ["1.5", "2"]}, None),  # they differ
        ({"a": ["1,234", "2,345"], "b": ["1.234", "2.345"]}, None),
        ({"a": ["1", "2"], "b": ["x", "y"]}, None),
    ],
)
def test_columns_agree_on_a_mark(tmp_path, columns, mark):
    profile = profile_of(tmp_path, **columns)
    found = {
        name: find_formats(ColumnCells(profile, name))
        for name, column in profile.columns.items()
        if column.type == "string"
    }
    assert mark_of_file(profile, found) == mark


def test_moments_are_those_of_the_readable_numbers(tmp_path):
    profile = profile_of(tmp_path, a=["$10", "$10", "NA", "$40.0", "free"])
    moments = measure(ColumnCells(profile, "a"), POINT)
    # 10, 10, 40: mean 20, variance (100 + 100 + 400) / 3.
    assert (moments.mean, moments.variance) == pytest.approx((20, 200))
    assert (moments.minimum, moments.maximum, moments.num_unreadable) == (10, 40, 1)
    far = compute_moments([(np.array([1e9 + 1, 1e9 + 3]), np.array([3, 1]))])
    assert far.variance == pytest.approx(0.75)  # of 1, 1, 1, 3
    assert compute_moments([(np.array([np.nan]), np.array([2]))]) is None


def test_what_is_peculiar_is_said(tmp_path):
    profile = profile_of(tmp_path, a=["$1,234.5", "2"], b=["3%", "4 %"], c=["3%", "0,5"], d=["1 000", "2"])
    said = {
        name: describe_format(ColumnCells(profile, name), number_format)
        for name, number_format in {"a": MONEY, "b": POINT, "c": COMMA, "d": POINT}.items()
    }
    assert said == {
        "a": "amounts of money (USD), thousands separated by commas",
        "b": "percentages",
        "c": "1 percentages among others, decimal commas",
        "d": "numbers as text",
    }
