import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.config.data import SplitConfig
from pipelines.data.dialect import Dialect
from pipelines.data.kinds import recognise_columns
from pipelines.data.profile import profile_csv
from pipelines.data.splits import Splits, plan_splits
from pipelines.data.staging import stage
from pipelines.errors import BadInputError


def test_good_files_are_read_where_they_are(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a,y\n1,2\n")
    staged = stage(profile_csv([file]), "y", tmp_path / "copies")
    assert (staged.folder, staged.pattern, staged.reasons) == (tmp_path, "data.csv", ())
    assert not (tmp_path / "copies").exists()


def test_rows_without_a_label_are_left_out(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text('a,y\n"1,\n5",p\n2,\n3,NA\n4,q\n')
    staged = stage(profile_csv([file]), "y", tmp_path / "copies")
    assert staged.reasons == ("2 rows without a value in 'y' are left out",)
    assert (staged.folder / "data-00000.csv").read_text() == 'a,y\n"1,\n5",p\n4,q\n'
    assert stage(profile_csv([file]), None, tmp_path / "copies").reasons == ()


def test_marks_and_missing_names_are_mended(tmp_path):
    file = tmp_path / "data[1].csv"
    file.write_bytes(b"\xef\xbb\xbf,y\n0,1\n1,2\n")
    staged = stage(profile_csv([file]), "y", tmp_path / "copies")
    assert len(staged.reasons) == 3
    assert (staged.folder / "data-00000.csv").read_text() == "unnamed,y\n0,1\n1,2\n"


def test_a_selection_of_a_folder_is_gathered(tmp_path):
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for file in files:
        file.write_text("x,y\n1,2\n")
    assert stage(profile_csv(files), "y", tmp_path / "copies").pattern == "*.csv"
    staged = stage(profile_csv(files[:2]), "y", tmp_path / "copies")
    assert sorted(file.name for file in staged.folder.iterdir()) == ["data-00000.csv", "data-00001.csv"]


def test_a_header_that_example_gen_would_misread_is_written_plainly(tmp_path):
    # It splits the first line at commas as it stands: quotes would become part of the names.
    file = tmp_path / "data.csv"
    for text in ('"a","y"\n1,2\n', "\na,y\n1,2\n", "a, y \n1,2\n", "a,y\r1,2\r"):
        file.write_text(text, newline="")
        staged = stage(profile_csv([file]), "y", tmp_path / "copies")
        assert staged.reasons == ("the header is written without quotes and white space",)
        assert (staged.folder / "data-00000.csv").read_text() == "a,y\n1,2\n"


def test_each_label_has_a_copy_of_its_own(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a,b\n1,\n,2\n")
    for label, rows in (("a", "1,\n"), ("b", ",2\n")):
        staged = stage(profile_csv([file]), label, tmp_path / "copies")
        assert (staged.folder / "data-00000.csv").read_text() == f"a,b\n{rows}"


def test_a_folder_that_would_be_read_as_a_pattern(tmp_path):
    folder = tmp_path / "data[1]"
    folder.mkdir()
    files = [folder / "a.csv", folder / "b.csv"]
    for file in files:
        file.write_text("x,y\n1,2\n")
    for chosen in (files, files[:1]):
        assert "pattern" in stage(profile_csv(chosen), "y", tmp_path / "copies").reasons[0]


def test_names_that_tfx_would_read_a_date_or_a_span_from(tmp_path):
    for name in ("d{YYYY}.csv", "{SPAN:3}.csv"):
        file = tmp_path / name
        file.write_text("a,y\n1,2\n")
        staged = stage(profile_csv([file]), "y", tmp_path / "copies")
        assert staged.reasons == (f"the name {str(file)!r} would be read as a pattern",)
        assert [copy.name for copy in staged.folder.iterdir()] == ["data-00000.csv"]


def test_other_dialects_are_written_plainly(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a;y\n'1;5';2\n0,5;say \"x\"\n")
    dialect = Dialect(";", "'")
    staged = stage(profile_csv([file], dialect), "y", tmp_path / "copies")
    assert staged.reasons == ("fields are separated by commas and quoted by double quotes",)
    assert (staged.folder / "data-00000.csv").read_text() == ('a,y\n1;5,2\n"0,5","say ""x"""\n')


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
    # Another split of the same files is another copy.
    assert stage(profile, "y", tmp_path / "copies").folder != staged.folder


def test_files_of_each_split_stay_apart(tmp_path):
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for number, file in enumerate(files):
        file.write_text(f"x,y\n{number},2\n")
    splits = Splits("files", eval_files=frozenset([files[1]]))
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


def test_a_carriage_return_in_a_cell_stays_in_quotes(tmp_path):
    file = tmp_path / "data.csv"
    file.write_bytes(b'a,y\n"x\ry",1\nz,NA\nu,2\n')
    staged = stage(profile_csv([file]), "y", tmp_path / "copies")
    assert (staged.folder / "data-00000.csv").read_bytes() == b'a,y\n"x\ry","1"\nu,2\n'


def test_a_parquet_file_may_have_no_rows_if_another_has_some(tmp_path):
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, values in zip(files, ([], ["u", "v"]), strict=True):
        pq.write_table(pa.table({"x": pa.array(values, pa.string())}), file)
    assert profile_csv(files).num_rows == 2
    with pytest.raises(BadInputError, match=r"a\.parquet: there is no row"):
        profile_csv(files[:1])
