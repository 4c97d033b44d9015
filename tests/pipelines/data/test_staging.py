import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.config.data import SplitConfig
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.kinds import recognise_columns
from pipelines.data.profile import profile_csv
from pipelines.data.splits import Splits, plan_splits
from pipelines.data.staging import stage
from pipelines.errors import BadInputError


def stage_text(folder, content, name="data.csv", label="y", dialect=COMMAS):
    """Stages a file; returns the reasons for a copy, and the copy's text."""
    (folder / name).write_bytes(content.encode())
    staged = stage(profile_csv([folder / name], dialect), label, folder / "copies")
    copy = staged.folder / "data-00000.csv"
    return staged.reasons, copy.read_bytes().decode() if copy.exists() else None


def write(*files):
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("x,y\n1,2\n")


def test_good_files_are_read_where_they_are(tmp_path):
    write(tmp_path / "data.csv")
    staged = stage(profile_csv([tmp_path / "data.csv"]), "y", tmp_path / "copies")
    assert (staged.folder, staged.pattern, staged.reasons) == (tmp_path, "data.csv", ())
    assert not (tmp_path / "copies").exists()


PLAIN_HEADER = (
    "the header is written without quotes and white space"  # which ExampleGen would read as part of it
)
NO_LABELS = "2 rows without a value in 'y' are left out"
MENDED = {
    "rows without a label": ('a,y\n"1,\n5",p\n2,\n3,NA\n4,q\n', {}, NO_LABELS,
                             'a,y\n"1,\n5",p\n4,q\n'),
    "rows without another label": ("a,b\n1,\n,2\n", {"label": "a"},
                                   "1 row without a value in 'a' is left out", "a,b\n1,\n"),
    "a header in quotes": ('"a","y"\n1,2\n', {}, PLAIN_HEADER, "a,y\n1,2\n"),
    "a blank line": ("\na,y\n1,2\n", {}, PLAIN_HEADER, "a,y\n1,2\n"),
    "white space in the header": ("a, y \n1,2\n", {}, PLAIN_HEADER, "a,y\n1,2\n"),
    "line ends of old Macs": ("a,y\r1,2\r", {}, PLAIN_HEADER, "a,y\n1,2\n"),
    "a name with a date": ("a,y\n1,2\n", {"name": "d{YYYY}.csv"}, "d{YYYY}.csv' would be read as a pattern",
                           "a,y\n1,2\n"),
    "a name with a span": ("a,y\n1,2\n", {"name": "{SPAN:3}.csv"}, "{SPAN:3}.csv' would be read as a pattern",
                           "a,y\n1,2\n"),
    "another dialect": ("a;y\n'1;5';2\n0,5;say \"x\"\n", {"dialect": Dialect(";", "'")},
                        "fields are separated by commas and quoted by double quotes",
                        'a,y\n1;5,2\n"0,5","say ""x"""\n'),
    "a carriage return in a cell": ('a,y\n"x\ry",1\nz,NA\nu,2\n', {},
                                    "1 row without a value in 'y' is left out", 'a,y\n"x\ry","1"\nu,2\n'),
}  # fmt: skip


@pytest.mark.parametrize(("content", "settings", "reason", "copy"), MENDED.values(), ids=MENDED)
def test_a_file_that_would_be_misread_is_copied(tmp_path, content, settings, reason, copy):
    (found,), text = stage_text(tmp_path, content, **settings)
    assert found.endswith(reason)
    assert text == copy


def test_each_label_has_a_copy_of_its_own(tmp_path):
    texts = [stage_text(tmp_path, "a,b\n1,\n,2\n", label=label)[1] for label in ("a", "b")]
    assert texts == ["a,b\n1,\n", "a,b\n,2\n"]
    assert stage_text(tmp_path, "a,b\n1,\n,2\n", label=None)[0] == ()


def test_marks_and_missing_names_are_mended(tmp_path):
    reasons, text = stage_text(tmp_path, "\ufeff,y\n0,1\n1,2\n", "data[1].csv")
    assert (len(reasons), text) == (3, "unnamed,y\n0,1\n1,2\n")


def test_a_selection_of_a_folder_is_gathered(tmp_path):
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    write(*files)
    assert stage(profile_csv(files), "y", tmp_path / "copies").pattern == "*.csv"
    staged = stage(profile_csv(files[:2]), "y", tmp_path / "copies")
    assert sorted(file.name for file in staged.folder.iterdir()) == ["data-00000.csv", "data-00001.csv"]


def test_a_folder_that_would_be_read_as_a_pattern(tmp_path):
    files = [tmp_path / "data[1]" / "a.csv", tmp_path / "data[1]" / "b.csv"]
    write(*files)
    for chosen in (files, files[:1]):
        assert "pattern" in stage(profile_csv(chosen), "y", tmp_path / "copies").reasons[0]


def test_rows_are_divided_by_time(tmp_path):
    file = tmp_path / "data.csv"
    rows = [f"2014-01-{day:02d},{day}" for day in (9, 1, 8, 2, 3, 4, 5, 6, 7)]
    file.write_text("t,y\n" + "\n".join(rows) + "\n,5\n2014-01-31,\n")
    profile = profile_csv([file])
    kinds = recognise_columns(profile, {})
    splits = plan_splits(SplitConfig(by="time", column="t"), profile, kinds)
    staged = stage(profile, "y", tmp_path / "copies", splits)
    assert staged.splits == (("train", "train/*.csv"), ("eval", "eval/*.csv"))
    late = (staged.folder / "eval" / "data-00000.csv").read_text().splitlines()
    # Two thirds of the ten rows with a time are older than the 7th; that of the 31st has no label.
    assert late == ["t,y", rows[0], rows[2], rows[8]]
    early = (staged.folder / "train" / "data-00000.csv").read_text().splitlines()
    assert sorted(early[1:] + late[1:]) == sorted([*rows, ",5"])
    assert ",5" in early
    assert max(early[1:]) < min(late[1:])
    splits = plan_splits(SplitConfig(by="time", column="t", test=0.3), profile, kinds)
    staged = stage(profile, "y", tmp_path / "copies", splits)
    assert staged.splits == (("train", "train/*.csv"), ("eval", "eval/*.csv"), ("test", "test/*.csv"))
    # The rows with a time up to the 7th are 7 of 10, and two thirds of these are up to the 4th.
    parts = [(staged.folder / name / "data-00000.csv").read_text().splitlines() for name in splits.names]
    assert parts[1:] == [["t,y", *rows[6:]], ["t,y", rows[0], rows[2]]]
    # Another split of the same files is another copy.
    assert stage(profile, "y", tmp_path / "copies").folder != staged.folder


def test_files_of_each_split_stay_apart(tmp_path):
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for number, file in enumerate(files):
        file.write_text(f"x,y\n{number},2\n")
    splits = Splits("files", split_of=dict(zip(files, ("train", "eval", "train"), strict=True)))
    staged = stage(profile_csv(files), "y", tmp_path / "copies", splits)
    found = {
        str(file.relative_to(staged.folder)): file.read_text().splitlines()[1]
        for file in staged.folder.rglob("*.csv")
    }
    assert found == {
        "train/data-00000.csv": "0,2",
        "eval/data-00001.csv": "1,2",
        "train/data-00002.csv": "2,2",
    }


def test_parquet_and_compressed_files_are_read_where_they_are(tmp_path):
    for place in ("packed", "parquet"):
        (tmp_path / place).mkdir()
    packed = [tmp_path / "packed" / name for name in ("a.csv.gz", "b.csv.gz")]
    for file in packed:
        file.write_bytes(gzip.compress(b"x,y\n1,2\n"))
    staged = stage(profile_csv(packed), "y", tmp_path / "copies")
    assert (staged.folder, staged.pattern, staged.reasons) == (tmp_path / "packed", "*.csv.gz", ())
    parquet = [tmp_path / "parquet" / name for name in ("a.parquet", "b.parquet")]
    for file in parquet:
        pq.write_table(pa.table({"x": ["01", "2"], "y": [1.0, None]}), file)
    staged = stage(profile_csv(parquet), None, tmp_path / "copies")
    assert (staged.pattern, staged.reasons) == ("*.parquet", ())
    assert not (tmp_path / "copies").exists()
    staged = stage(profile_csv(parquet), "y", tmp_path / "copies")
    assert staged.reasons == ("2 rows without a value in 'y' are left out",)
    assert (staged.folder / "data-00001.csv").read_text() == "x,y\n01,1\n"


def test_a_parquet_file_may_have_no_rows_if_another_has_some(tmp_path):
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, values in zip(files, ([], ["u", "v"]), strict=True):
        pq.write_table(pa.table({"x": pa.array(values, pa.string())}), file)
    assert profile_csv(files).num_rows == 2
    with pytest.raises(BadInputError, match=r"a\.parquet: there is no row"):
        profile_csv(files[:1])
