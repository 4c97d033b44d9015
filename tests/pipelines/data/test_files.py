import pytest

from pipelines.data.files import find_csv_files
from pipelines.errors import BadInputError


def touch(folder, *names):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a,b\n1,2\n")


def test_file_folder_and_pattern(tmp_path):
    touch(tmp_path, "b.csv", "a.csv", "notes.txt", "c.data")
    assert find_csv_files(str(tmp_path / "c.data")) == [tmp_path / "c.data"]
    assert find_csv_files(str(tmp_path)) == [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert find_csv_files(str(tmp_path / "[bc].*")) == [tmp_path / "b.csv", tmp_path / "c.data"]


def test_the_newest_span_is_taken_by_number(tmp_path):
    touch(tmp_path, "span-2/x.csv", "span-10/x.csv", "span-9/x.csv", "span-old/x.csv")
    assert find_csv_files(str(tmp_path / "span-{SPAN}")) == [tmp_path / "span-10/x.csv"]
    assert find_csv_files(str(tmp_path / "span-{SPAN}/*.csv")) == [tmp_path / "span-10/x.csv"]


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    touch(tmp_path, "data[1].csv")
    assert find_csv_files(str(tmp_path / "data[1].csv")) == [tmp_path / "data[1].csv"]


def test_nothing_there(tmp_path):
    touch(tmp_path, "notes.txt")
    with pytest.raises(BadInputError, match=r"no \*\.csv file \(it holds notes\.txt\)"):
        find_csv_files(str(tmp_path))
    with pytest.raises(BadInputError, match="There is no file or folder"):
        find_csv_files(str(tmp_path / "none.csv"))
    with pytest.raises(BadInputError, match="No file matches"):
        find_csv_files(str(tmp_path / "*.csv"))
    with pytest.raises(BadInputError, match="No span matches"):
        find_csv_files(str(tmp_path / "span-{SPAN}"))
