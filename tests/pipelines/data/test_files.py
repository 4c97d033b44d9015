import os
import tempfile
from pathlib import Path

import pytest

from pipelines.data.files import NoCsvFileError, find_csv_files
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError


def touch(folder, *names):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a,b\n1,2\n")


def test_file_folder_pattern_and_a_name_that_looks_like_one(tmp_path):
    touch(tmp_path, "b.csv", "a.csv", "notes.txt", "c.data")
    touch(tmp_path / "x", "data[1].csv")
    assert find_csv_files(str(tmp_path / "x" / "data[1].csv")) == [tmp_path / "x" / "data[1].csv"]
    assert find_csv_files(str(tmp_path / "c.data")) == [tmp_path / "c.data"]
    assert find_csv_files(str(tmp_path)) == [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert find_csv_files(str(tmp_path / "[bc].*")) == [tmp_path / "b.csv", tmp_path / "c.data"]


def test_a_path_without_csv_files_is_refused(tmp_path):
    touch(tmp_path, "notes.txt")
    touch(tmp_path / "sheets", "a.XLSX", "notes.txt")
    for path, message in {
        tmp_path: r"no \*\.csv file \(it holds notes\.txt",
        tmp_path / "none.csv": "There is no file or folder",
        tmp_path / "*.csv": "No file matches",
        tmp_path / "sheets": r"it holds a\.XLSX, notes\.txt\)\. Save the sheets as CSV",
    }.items():
        with pytest.raises(NoCsvFileError, match=message):
            find_csv_files(str(path))


def test_capitals_and_compressed_files_are_read_but_not_each_compression(tmp_path):
    names = ["a.csv", "b.CSV", "c.CSV.gz", "d.csv.zst", "e.csv.bz2"]
    touch(tmp_path, *names)
    assert find_csv_files(str(tmp_path)) == [tmp_path / name for name in names]
    touch(tmp_path, "f.CSV.xz")
    with pytest.raises(BadInputError, match=r"holds f\.CSV\.xz, which is compressed"):
        find_csv_files(str(tmp_path))
    touch(tmp_path, "a.csv.gz")
    with pytest.raises(BadInputError, match=r"a\.csv and a\.csv\.gz seem to be the same rows"):
        find_csv_files(str(tmp_path / "a*"))


def test_parquet_files_have_no_csv_beside_them(tmp_path):
    touch(tmp_path, "a.parquet", "b.Parquet")
    assert find_csv_files(str(tmp_path)) == [tmp_path / "a.parquet", tmp_path / "b.Parquet"]
    touch(tmp_path, "c.csv.gz")
    with pytest.raises(BadInputError, match=r"a\.parquet is a Parquet file, and there are CSV"):
        find_csv_files(str(tmp_path))


@pytest.fixture
def unprivileged():
    """Makes permissions hold, also where tests run as root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


@pytest.mark.usefixtures("unprivileged")
def test_files_and_folders_without_permission_to_read():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        touch(folder, "a.csv")
        (folder / "a.csv").chmod(0)
        with pytest.raises(BadInputError, match=r"a\.csv cannot be read: Permission denied\."):
            profile_csv(find_csv_files(name))
        folder.chmod(0o300)
        with pytest.raises(BadInputError, match=f"{name} cannot be read: Permission denied"):
            find_csv_files(name)
        folder.chmod(0o700)
