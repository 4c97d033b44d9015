import bz2
import gzip
import os

import pytest

from pipelines.data import byte_checks
from pipelines.data.profile import profile_csv
from pipelines.data.staging import stage
from pipelines.errors import BadInputError


@pytest.fixture
def profile(tmp_path):
    """Returns a function that writes a CSV and profiles it."""

    def write(content):
        file = tmp_path / "data.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return profile_csv([file])

    return write


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"a,y\n1,2\n", mtime=0), r"line 1: the file is compressed with gzip\. Unpack it"),
        (bz2.compress(b"a,y\n1,2\n"), r"compressed with bzip2\..* name end in \.csv\.bz2"),
        (b"\x28\xb5\x2f\xfd\x04\x00", r"compressed with zstd\..* name end in \.csv\.zst"),
        (b"PAR1\x15\x04\x15", r"is a Parquet file\. Let its name end in \.parquet"),
        ("a,y\n1,2\n".encode("utf-16"), r"the file is UTF-16 text.*iconv -f utf-16 -t utf-8"),
        ("a,y\n1,2\r3,4\r", r"line 2, column 2: '1,2\\r3,4' holds a carriage return outside"),
        ('a,y\n"5\n",2\n3,"4\n5,6\n', r"line 4, column 'y': .* starts with '4\\n5,6\\n'.* never closed"),
        ('a,y\n1,2\n"3,4\n', r"line 3, column 'a': .* starts with '3,4\\n'.* never closed"),
    ],
)
def test_what_is_refused_names_line_column_and_fix(profile, content, message):
    with pytest.raises(BadInputError, match=message) as error:
        profile(content)
    assert "data.csv, line" in str(error.value)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [200_000, 20_000_000])  # within a block of the parser, and beyond
def test_a_field_that_csv_example_gen_cannot_read(profile, size):
    with pytest.raises(BadInputError, match=f"line 3, column 'y': a field has {size} characters"):
        profile("a,y\n1,2\n3," + "x" * size + "\n5,6\n")
    assert profile("a,y\n1," + "x" * 131_072 + "\n").num_rows == 1


def test_carriage_returns_that_end_lines_stand_in_quotes_or_end_a_block(profile, monkeypatch):
    assert profile(b"a,y\r\n1,2\r\n").num_rows == 1
    assert profile(b"a,y\r1,2\r3,4\r").num_rows == 2
    assert profile(b'a,y\n"1\r",2\n').num_rows == 1
    monkeypatch.setattr(byte_checks, "_BLOCK_BYTES", 4)
    assert profile(b"a,y\r\n1,2\r\n").num_rows == 1


def test_quotes_in_the_middle_of_a_field_are_written_as_csv_example_gen_reads_them(profile, tmp_path):
    regular = profile('a,y\n"say ""hi""\nthere",1\n')
    assert not regular.has_irregular_quotes
    irregular = profile('a,y\n5" pipe,1\n6" pipe,2\n')
    assert irregular.has_irregular_quotes
    staged = stage(irregular, None, tmp_path / "copies")
    assert staged.reasons == ("fields with quotes in them are put in quotes",)
    copy = (staged.folder / "data-00000.csv").read_text()
    assert copy == 'a,y\n"5"" pipe",1\n"6"" pipe",2\n'


def test_errors_of_the_file_system_name_file_and_setting():
    with (
        pytest.raises(BadInputError, match=r"^x\.csv cannot be read: Permission denied\. Check s"),
        byte_checks.readable("folder", "s"),
    ):
        raise PermissionError(13, os.strerror(13), "x.csv")
