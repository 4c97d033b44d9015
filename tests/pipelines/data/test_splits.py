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

    def make(columns, **settings):
        profile = profile_csv([write_table(tmp_path, columns)])
        return plan_splits(SplitConfig(**settings), profile, recognise_columns(profile, {}))

    return make


def test_rows_are_drawn_unless_it_is_said_otherwise(plan):
    assert plan({"a": range(9)}) == ROW_BY_ROW
    assert not ROW_BY_ROW.needs_copies
    assert ROW_BY_ROW.identity == ""


def test_the_newest_third_evaluates_with_all_rows_of_one_time(plan):
    days = [f"{30 - number}.01.2014" for number in range(30)]  # newest first
    splits = plan({"t": days, "x": range(30)}, by="time", column="t")
    cells = pyarrow.array([*days, "", "soon"])
    assert splits.is_late(cells).tolist() == [True] * 10 + [False] * 22
    assert splits.note == "10 rows from 2014-01-21 00:00:00 on evaluate, 20 train"
    assert splits.needs_copies
    splits = plan({"year": [1] * 2 + [2] * 6 + [""] * 3, "x": range(11)}, by="time", column="year")
    # Two thirds of 8 lie within the second year: all of it evaluates.
    assert splits.is_late(pyarrow.array(["1", "2", "3"])).tolist() == [False, True, True]
    assert splits.note == "6 rows from 2 on evaluate, 5 train (3 of them without a time)"
    first = plan({"year": [1] * 8 + [2], "x": range(9)}, by="time", column="year")
    assert first.cutoff == 2  # or else nothing trains


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "time", "column": "none"}, "split.column = 'none': there is no such column"),
        ({"by": "time", "column": "city"}, "the column is read as category, which has no order"),
        ({"by": "time", "column": "same"}, "all rows have the same time"),
        ({"by": "column", "column": "same"}, "has 1 different value; at least two"),
    ],
)
def test_columns_that_cannot_divide(plan, settings, message):
    columns = {"city": ["Oslo", "Rome"] * 10, "same": [5] * 20, "x": range(20)}
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
    for split, path, message in (
        ({"train": "*.csv", "eval": "eval.csv"}, tmp_path, "both match .*eval.csv"),
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
