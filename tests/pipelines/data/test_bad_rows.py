import csv
from pathlib import Path

import pytest

from pipelines.data.bad_rows import BadRows, set_aside
from pipelines.data.cells import any_field_size
from pipelines.data.dialect import COMMAS, Dialect
from pipelines.data.encoding import Utf8Files
from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError

GOOD = b'1,"a, ""b""\nc",x\n' + b"2,b,y\n" * 60


def split(*files: Path, dialect=COMMAS) -> tuple[list[Path], BadRows | None]:
    texts, bad_rows = set_aside(Utf8Files([*files], [*files], "utf-8"), dialect)
    return texts.files, bad_rows


def write(folder: Path, content: bytes, name: str = "a.csv") -> Path:
    (folder / name).write_bytes(b"n,text,y\n" + content)
    return folder / name


def test_rows_that_cannot_be_read_are_left_out_and_kept_with_place_and_reason(tmp_path):
    bad = [b"3,c\n", b"4,c,x,more\n", b"5,\xff\xfe,x\n", b"6,a\0b,x\n", b"7," + b"c" * 131_073 + b",x\n"]
    first = write(tmp_path, GOOD)
    second = write(tmp_path, b"\n" + b"".join(row + GOOD for row in bad), "b.csv")
    files, found = split(first, second)
    assert files[0] == first
    assert files[1].read_bytes() == b"n,text,y\n\n" + (b"\n" + GOOD) * 5
    assert found is not None
    assert found.num_rows == 5
    assert found.counts == {
        "a wrong number of cells": 2,
        "bytes that are not UTF-8": 1,
        "a NUL character": 1,
        "a long cell": 1,
    }
    with found.file.open(newline="") as stream, any_field_size():
        kept = list(csv.DictReader(stream))
    # GOOD has 62 lines, and the second file starts with a header and an empty line.
    assert [(row["file"], row["line"]) for row in kept] == [(str(second), str(3 + 63 * n)) for n in range(5)]
    assert [row["reason"] for row in kept] == [
        "2 cells where the header has 3",
        "4 cells where the header has 3",
        "column 'text' holds the byte 0xff",
        "column 'text' holds a NUL character",
        "column 'text' has 131073 characters",
    ]
    assert [row["row"] for row in kept[:3]] == ["3,c", "4,c,x,more", r"5,\udcff\udcfe,x"]
    assert profile_csv(files).num_rows == 61 * 6


def test_files_without_bad_rows_and_another_dialect_are_kept(tmp_path):
    first = write(tmp_path, GOOD)
    assert split(first) == ([first], None)
    file = tmp_path / "a.csv"
    file.write_text("a;b\n" + "'1;2';3,4\n" * 30 + "1;2;3\n")
    files, found = split(file, dialect=Dialect(";", "'"))
    assert files[0].read_text() == "a;b\n" + "'1;2';3,4\n" * 30 + "\n"
    assert found is not None
    assert found.num_rows == 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_other_rows_stay_on_their_lines(tmp_path, end):
    file = tmp_path / "a.csv"
    file.write_bytes(
        end.join([b"a,b", *[b"1,2"] * 30, b"1", b"1,\r2" if end == b"\n" else b"2", b"x,2", b""])
    )
    files, found = split(file)
    assert found is not None
    assert found.num_rows == (3 if end == b"\n" else 2)
    cell = profile_csv(files).find_non_number("a")
    assert (cell.value, cell.line) == ("x", 35 if end == b"\n" else 34)


def test_many_bad_rows_are_a_wrong_dialect_and_a_quote_that_swallows_rows_is_refused(tmp_path):
    file = write(tmp_path, b"1,b,x\n" * 89 + b"1,b\n" * 10)
    assert split(file)[1].num_rows == 10  # of 100 lines, with the header
    file = write(tmp_path, b"1,b,x\n" * 88 + b"1,b\n" * 11)
    with pytest.raises(BadInputError, match=r"11 of 100 lines .* more than 10%.*a\.csv, line 90"):
        split(file)
    rows = b"1,b,x\n" * 50 + b'1,b,"x\n' + b"1,b,x\n" * 9 + b'1,"b",x\n' + b"1,b,x\n" * 400
    file = write(tmp_path, rows)
    with pytest.raises(BadInputError, match=r"a\.csv, line 52: a stray quote .* 11 lines into one row"):
        split(file)
