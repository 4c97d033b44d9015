from fractions import Fraction

import pyarrow
import pytest

from pipelines.config.data import SplitConfig
from pipelines.data.files import NoCsvFileError
from pipelines.data.kinds import recognise_columns
from pipelines.data.profile import profile_csv
from pipelines.data.splits import ROW_BY_ROW, find_split_files, plan_splits
from pipelines.errors import BadInputError
from tests.pipelines.data.tables import write_table


@pytest.fixture
def plan(tmp_path):
    """Returns a function that plans the splits of a table given as {name: cells}."""

    def make(columns, label=None, drops=False, **settings):
        profile = profile_csv([write_table(tmp_path, columns)])
        kinds = recognise_columns(profile, {})
        return plan_splits(SplitConfig(**settings), profile, kinds, label=label, drops_unlabelled=drops)

    return make


def test_rows_are_drawn_unless_it_is_said_otherwise(plan):
    assert plan({"a": range(9)}) == ROW_BY_ROW
    assert not ROW_BY_ROW.needs_copies
    assert ROW_BY_ROW.identity == ""


def test_the_newest_third_evaluates_with_all_rows_of_one_time(plan):
    days = [f"{30 - number}.01.2014" for number in range(30)]  # newest first
    splits = plan({"t": days, "x": range(30)}, by="time", column="t")
    cells = pyarrow.array([*days, "", "soon"])
    assert splits.positions(cells).tolist() == [1] * 10 + [0] * 22
    assert splits.note == "10 rows from 2014-01-21 00:00:00 on evaluate, 20 train"
    assert splits.needs_copies
    splits = plan({"year": [1] * 2 + [2] * 6 + [""] * 3, "x": range(11)}, by="time", column="year")
    # Two thirds of 8 lie within the second year: all of it evaluates.
    assert splits.positions(pyarrow.array(["1", "2", "3"])).tolist() == [0, 1, 1]
    assert splits.note == "6 rows from 2 on evaluate, 5 train (3 of them without a time)"
    first = plan({"year": [1] * 8 + [2], "x": range(9)}, by="time", column="year")
    assert first.cutoffs == (2,)  # or else nothing trains


@pytest.mark.parametrize(
    ("years", "positions", "note"),
    [
        # A fifth of 30 tests; 8 of the others evaluate, 16 train.
        (range(30), [0] * 16 + [1] * 8 + [2] * 6, "6 rows from 24 on test, 8 rows from 16 on evaluate"),
        ([1] * 28 + [2, 3], [0] * 28 + [1, 2], "1 row from 3 on tests, 1 row from 2 on evaluates, 28 train"),
        ([1, 2, *[3] * 28], [0, 1] + [2] * 28, "28 rows from 3 on test, 1 row from 2 on evaluates, 1 trains"),
    ],
)
def test_the_newest_rows_test(plan, years, positions, note):
    splits = plan({"year": years, "x": range(30)}, by="time", column="year", test=0.2)
    assert splits.names == ("train", "eval", "test")
    assert splits.positions(pyarrow.array(map(str, years))).tolist() == positions
    assert splits.note.startswith(note)


def test_rows_without_a_label_have_no_say_where_they_are_left_out(plan):
    """Of 30 days, the outcome of the newest 12 is not known yet."""
    columns = {"day": range(30), "y": [*(number % 2 for number in range(17)), "", 0, *["NA"] * 11]}
    columns["day"] = [*range(29), ""]
    splits = plan(columns, "y", True, by="time", column="day")
    assert splits.cutoffs == (12,)  # of 0 to 16 and 18
    assert splits.note == "6 rows from 12 on evaluate, 12 train"
    assert plan(columns, "y", False, by="time", column="day").cutoffs == (19,)
    with pytest.raises(BadInputError, match="all rows have the same time"):
        plan({"day": [1, 2, ""], "y": ["", "", 1]}, "y", True, by="time", column="day")


def test_shares_of_the_rows():
    assert SplitConfig().shares == (Fraction(2, 3), Fraction(1, 3))
    assert SplitConfig(test=0.2).shares == (Fraction(8, 15), Fraction(4, 15), Fraction(1, 5))
    for settings, message in (
        ({"test": "test.csv"}, 'with by = "row", test is a share, such as 0.2'),
        ({"by": "files", "train": "a", "eval": "b", "test": 0.2}, "test is a file or a pattern"),
        ({"test": 1}, "from 0.01 to 0.99. Received: 1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            SplitConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "time", "column": "none"}, "split.column = 'none': there is no such column"),
        ({"by": "time", "column": "city"}, "the column is read as category, which has no order"),
        ({"by": "time", "column": "same"}, "all rows have the same time"),
        ({"by": "time", "column": "two", "test": 0.5}, "it has 2 different times, too few for 3 splits"),
        ({"by": "column", "column": "same"}, "has 1 different value; at least two"),
    ],
)
def test_columns_that_cannot_divide(plan, settings, message):
    columns = {"city": ["Oslo", "Rome"] * 10, "same": [5] * 20, "two": [1, 2] * 10, "x": range(20)}
    with pytest.raises(BadInputError, match=message):
        plan(columns, **settings)


def test_rows_without_a_group_are_said(plan):
    splits = plan({"p": ["a", "b", "", "c"], "x": range(4)}, by="column", column="p")
    assert (splits.by, splits.column, splits.needs_copies) == ("column", "p", False)
    assert splits.note == "1 row without a 'p' is divided row by row"


def test_files_of_each_split(tmp_path):
    for name in ("train-1.csv", "train-2.csv", "eval.csv"):
        (tmp_path / name).write_text("a\n1\n")
    found = find_split_files(str(tmp_path), SplitConfig(by="files", train="train*.csv", eval="eval.csv"))
    assert [file.name for file in found["train"]] == ["train-1.csv", "train-2.csv"]
    assert [file.name for file in found["eval"]] == ["eval.csv"]
    settings = {"by": "files", "train": "train-1.csv", "eval": "eval.csv", "test": "train-2.csv"}
    found = find_split_files(str(tmp_path), SplitConfig(**settings))
    assert {name: [file.name for file in files] for name, files in found.items()} == {
        name: [settings[name]] for name in ("train", "eval", "test")
    }
    for split, path, message in (
        ({"train": "*.csv", "eval": "eval.csv"}, tmp_path, "both match .*eval.csv"),
        (
            {"train": "t*", "eval": "eval.csv", "test": "*l.csv"},
            tmp_path,
            "split.test = .* both match .*eval",
        ),
        ({"train": "a*.csv", "eval": "eval.csv"}, tmp_path, "No file matches"),
        ({"train": "a", "eval": "b"}, tmp_path / "eval.csv", "needs a folder as data.path"),
    ):
        with pytest.raises(BadInputError, match=message):
            find_split_files(str(path), SplitConfig(by="files", **split))
    with pytest.raises(NoCsvFileError):
        find_split_files(str(tmp_path / "none"), SplitConfig(by="files", train="a", eval="b"))


def test_files_of_each_split_in_a_folder_that_looks_like_a_pattern(tmp_path):
    folder = tmp_path / "data[1]"
    folder.mkdir()
    for name in ("train-1.csv", "eval.csv"):
        (folder / name).write_text("a\n1\n")
    found = find_split_files(str(folder), SplitConfig(by="files", train="t*", eval="eval.csv"))
    assert found == {"train": [folder / "train-1.csv"], "eval": [folder / "eval.csv"]}
