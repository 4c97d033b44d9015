import numpy as np
import pytest

from pipelines.data.column_cells import ColumnCells
from pipelines.data.dialect import Dialect
from pipelines.data.formats.number_format import COMMA, POINT
from pipelines.data.number_kinds import (
    describe_format,
    formats_of,
    mark_of_file,
    measure,
    moments_of,
)
from pipelines.data.profile import profile_csv


def profile_of(folder, **columns):
    file = folder / "data.csv"
    rows = zip(*columns.values(), strict=True)
    file.write_text("".join(";".join(row) + "\n" for row in [list(columns), *rows]))
    return profile_csv([file], Dialect(";"))


@pytest.mark.parametrize(
    ("cells", "formats"),
    [
        (["$1.50", "2"], (POINT,)),
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
    assert formats_of(ColumnCells(profile, "a")) == formats


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
    assert mark_of_file(profile_of(tmp_path, **columns)) == mark


def test_moments_are_those_of_the_readable_numbers(tmp_path):
    profile = profile_of(tmp_path, a=["$10", "$10", "NA", "$40.0", "free"])
    moments = measure(ColumnCells(profile, "a"), POINT)
    # 10, 10, 40: mean 20, variance (100 + 100 + 400) / 3.
    assert (moments.mean, moments.variance) == pytest.approx((20, 200))
    assert (moments.minimum, moments.maximum, moments.num_unreadable) == (10, 40, 1)
    far = moments_of([(np.array([1e9 + 1, 1e9 + 3]), np.array([3, 1]))])
    assert far.variance == pytest.approx(0.75)  # of 1, 1, 1, 3
    assert moments_of([(np.array([np.nan]), np.array([2]))]) is None


def test_what_is_peculiar_is_said(tmp_path):
    profile = profile_of(
        tmp_path, a=["$1,234.5", "2"], b=["3%", "4 %"], c=["3%", "0,5"], d=["1 000", "2"]
    )
    said = {
        name: describe_format(ColumnCells(profile, name), COMMA if name == "c" else POINT)
        for name in profile.columns
    }
    assert said == {
        "a": "amounts of money, thousands separated by commas",
        "b": "percentages",
        "c": "1 percentages among others, decimal commas",
        "d": "numbers as text",
    }
