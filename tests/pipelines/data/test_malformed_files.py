# ruff: noqa: E501, RUF001
"""Malformed files, by kind: each is refused with its place, left out by row, or read with a note."""

import bz2
import gzip
import io
import os
import re
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.data.profile import profile_csv
from pipelines.errors import BadInputError

CITIES = ("lisbon", "oslo", "rome", "bergen", "porto")
LABELS = "1001110100110110001010111010010110101100"  # tells nothing about the other columns
HEADER = "n,city,day,y\n"
ROWS = [
    f"{number * 7 % 41}.5,{CITIES[number % 5]},2024-01-{number % 28 + 1:02d},{label}\n"
    for number, label in enumerate(LABELS)
]
LINE = 22  # of the row that `with_row` adds
FILE = r"data\.csv"


def with_row(row="", header=HEADER, before=""):
    """Returns a file of 40 rows and another one, on line 22."""
    return before + header + "".join(ROWS[: LINE - 2]) + row + "".join(ROWS[LINE - 2 :])


def as_bytes(content):
    return content if isinstance(content, bytes) else content.encode()


def zipped(name, content):
    """Returns a ZIP archive that holds a file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


GOOD = with_row()
E = "1.5,é,2024-01-01,1\n"  # so that the file is UTF-8
CELLS = "where the header has 4"

# Content, message of the refusal behind "data.csv, line 22", reason and lines of `on_bad_row = "quarantine"`.
BY_ROW = {
    "a short row": ("1.5,oslo,2024-01-01\n", f".*3 fields {CELLS}; .* column 'y'", "3 cells"),
    "a long row": ("1.5,oslo,2024-01-01,1,9\n", ".*5 fields .*; '9' follows the last", "5 cells"),
    "a row of one cell": ("oslo\n", ".*1 field .* no value for column 'city'", "1 cell "),
    "a delimiter too many": ("1.5,oslo,2024-01-01,1,\n", ".*'' follows the last", "5 cells"),
    "a comma without quotes": ("1,5,oslo,2024-01-01,1\n", ".*5 fields", "5 cells"),
    "a line of white space": ("   \n", ".*1 field", "1 cell "),
    "a comment": ("# from here on by hand\n", ".*1 field", "1 cell "),
    "a conflict of git": ("<<<<<<< HEAD\n", ".*1 field", "1 cell "),
    "a row with semicolons": ("1.5;oslo;2024-01-01;1\n", ".*1 field", "1 cell "),
    "a space before quotes": ('1.5, "oslo, old",2024-01-01,1\n', ".*5 fields", "5 cells"),
    "curly quotes": ("1.5,“oslo, old”,2024-01-01,1\n", ".*5 fields", "5 cells"),
    "text after quotes": ('1.5,"oslo"x,2024-01-01,1\n', ", column 'city': .*'oslox' has text after", "text after its quotes"),
    "a quote in quotes": ('1.5,"os"lo",2024-01-01,1\n', ", column 'city': .* has text after", "text after its quotes"),
    "a quote behind a backslash": ('1.5,"os\\"lo",2024-01-01,1\n', ", column 'city': .*a backslash", "text after its quotes"),
    "a NUL in a text": ("1.5,os\0lo,2024-01-01,1\n", r", column 2: 'os\\x00lo' holds a NUL", "column 'city' holds a NUL"),
    "a NUL in a number": ("1\0.5,oslo,2024-01-01,1\n", r", column 1: '1\\x00.5' holds a NUL", "column 'n' holds a NUL"),
    "a byte of Latin-1 amid UTF-8": (b"1.5,caf\xe9,2024-01-01,1\n", ", column 'city': byte 0xe9 is not UTF-8", "byte 0xe9"),
    "a character that is cut": (b"1.5,caf\xc3,2024-01-01,1\n", ", column 'city': byte 0xc3", "byte 0xc3"),
    "half a surrogate pair": (b"1.5,\xed\xa0\x80,2024-01-01,1\n", ", column 'city': byte 0xed", "byte 0xed"),
    "UTF-8 with too many bytes": (b"1.5,\xc0\xaf,2024-01-01,1\n", ", column 'city': byte 0xc0", "byte 0xc0"),
    "a byte 0xff": (b"1.5,a\xff,2024-01-01,1\n", ", column 'city': byte 0xff", "byte 0xff"),
    "a mark of the byte order in the middle": ("\ufeff1.5,oslo,2024-01-01,1\n", r": '\\ufeff1.5' in column 'n' starts with", "starts with a byte order mark"),
    "the header once more": (HEADER, r": the row is the header once more \(n,city,day,y\)", "the header once more"),
    "the header once more, in quotes": ('"n","city", "day" ,y\n'.replace(' "day" ', "day"), ": the row is the header once more", "the header once more"),
    "a carriage return in a cell": ("1.5,os\rlo,2024-01-01,1\n", ", column 2: .* a carriage return outside", "a carriage return"),
    "a carriage return as an end": ("1.5,oslo,2024-01-01,1\r2.5,oslo,2024-01-01,0\n", ", column 4: .* a carriage return", "a carriage return"),
    "a long cell": (f"1.5,{'x' * 131_073},2024-01-01,1\n", ", column 'city': a field has 131073 characters", "131073 characters"),
}  # fmt: skip


def write(folder, content, name="data.csv"):
    (folder / name).write_bytes(as_bytes(content))
    return folder / name


def refusal(read, path, **settings):
    """Returns the message with which a path is refused."""
    with pytest.raises(BadInputError) as error:
        read(path, **settings)
    return str(error.value)


@pytest.mark.parametrize("kind", BY_ROW)
def test_a_row_is_refused_with_its_place_or_left_out(tmp_path, read_as_a_run, kind):
    row, said, reason = BY_ROW[kind]
    content = with_row("@").encode().replace(b"@", as_bytes(row)) + E.encode()
    path = write(tmp_path, content)
    message = refusal(read_as_a_run, path)
    assert re.search(f"{FILE}, line {LINE}(?: |:|,){said.removeprefix(',').removeprefix(':')}", message)
    found = read_as_a_run(path, on_bad_row="quarantine")
    assert found.num_rows == 41
    assert re.search(rf"left out: \d rows? .*{FILE}, line {LINE}: .*{reason}", found.notes)
    assert [name for name, column in found.types.items() if column.name == "TEXT"] == ["city", "day"]


# Content, message of the refusal, which `quarantine` repeats unless the third part says otherwise.
WHOLE = {
    "a quote that stays open": (with_row('1.5,"oslo,2024-01-01,1\n'), f"{FILE}, line 22, column 'city': .* is never closed"),
    "a quote that stays open at the end": (GOOD + '1.5,oslo,2024-01-01,"1', f"{FILE}, line 42, column 'y': .* is never closed"),
    "two stray quotes": (GOOD.replace(ROWS[8], '1.5,"oslo,2024-01-01,1\n').replace(ROWS[15], '1.5,rome",2024-01-01,1\n'), f"{FILE}, line 10, column 'city': .* a stray quote"),
    "a quote in the header": (with_row(header='n,"city,day,y\n'), f"{FILE}, line 1: the header cannot be read"),
    "NULs after a crash": (GOOD + "\0" * 512, r"data\.csv, line 42, column 1: .* holds a NUL character, .* Remove it", "left out"),
    "NULs alone": ("\0" * 100, f"{FILE}, line 1: .* column 1 holds a NUL"),
    "a NUL in the header": (with_row(header="n,ci\0ty,day,y\n"), f"{FILE}, line 1: the name 'ci.x00ty' of column 2 holds a NUL"),
    "two marks of the byte order": ("\ufeff\ufeff" + GOOD, f"{FILE}, line 1: the name .* column 1 holds a byte order mark"),
    "a title": (with_row(before="Report of today\n"), f"{FILE}, line 2 .*4 fields where the header has 1", "41 of 42 lines .* line 2"),
    "a line for spreadsheets": ("sep=;\n" + GOOD.replace(",", ";"), f"{FILE}, line 1: .*sep="),
    "no header": ("".join(ROWS), f"{FILE}, line 1: there is no label column 'y'. The first line looks like a row of data .'[0-9].*Columns: .*'lisbon'"),
    "a header alone": (HEADER, FILE + r": there is a header \(line 1\) but no row"),
    "a header and blank lines": (HEADER + "\n\r\n\n", FILE + r": there is a header \(line 1\) but no row"),
    "nothing": ("", f"{FILE} is empty: a header line"),
    "blank lines alone": ("\n\r\n\n", f"{FILE}, line 1: a header line"),
    "white space alone": ("   ", f"{FILE}, line 1: a header line"),
    "a mark of the byte order alone": ("\ufeff", f"{FILE}, line 1: a header line"),
    "a name twice": (with_row(header="n,city,n,y\n"), f"{FILE}, line 1: the column name 'n' appears 2 times .columns 1, 3"),
    "a name twice but for white space": (with_row(header="n,city, n ,y\n"), f"{FILE}, line 1: the column name 'n' appears 2 times"),
    "two names left out": (with_row(header="n,,,y\n"), f"{FILE}, line 1: the column name 'unnamed' appears 2"),
    "all names left out": (with_row(header=",,,\n"), f"{FILE}, line 1: a header line"),
    "a name too few": (with_row(header="n,city,y\n"), f"{FILE}, line 2 .*: 4 fields where the header has 3", "40 of 41 lines"),
    "a name too many": (with_row(header="n,city,day,hour,y\n"), f"{FILE}, line 2 .*: 4 fields where the header has 5", "40 of 41 lines"),
    "a delimiter too many in all rows": (GOOD.replace("\n", ",\n").replace("y,", "y"), f"{FILE}, line 2 .*: 5 fields where", "40 of 41 lines"),
    "a line break in a name": (with_row(header='n,"ci\nty",day,y\n'), f"{FILE}, line 1: the name .* of column 2 holds a comma or a line break"),
    "a comma in a name": (with_row(header='n,"ci,ty",day,y\n'), f"{FILE}, line 1: the name 'ci,ty' of column 2"),
    "a name without end": (with_row(header=f"n,{'c' * 131_073},day,y\n"), f"{FILE}, line 1: the header cannot be read: field larger"),
    "half of it with semicolons": (HEADER + "".join(ROWS[:20]) + "".join(ROWS[20:]).replace(",", ";"), f"{FILE}, line 22 .*: 1 field where", "20 of 41 lines"),
    "a header with semicolons": (with_row(header="n;city;day;y\n"), f"{FILE}, line 2 .*: 4 fields where .* semicolons", "40 of 41 lines"),
    "fields between spaces": (GOOD.replace(",", " "), f"{FILE}, line 1: there is no label column 'y'. Its fields seem to be separated by spaces: give --set 'data.delimiter=\" \"'"),
    "two carriage returns at each end": (GOOD.replace("\n", "\r\r\n"), f"{FILE}, line 1, column 4: .* carriage return"),
    "ends of lines in wrong order": (GOOD.replace("\n", "\n\r"), f"{FILE}, line 2, column 1: .* carriage return", "81 of 82 lines"),
    "no label in any row": (re.sub(",[01]\n", ",\n", GOOD), f"{FILE}: the label column 'y' is empty in all 40 rows .lines 2 to 41"),
    "no label but NA": (re.sub(",[01]\n", ",NA\n", GOOD), f"{FILE}: the label column 'y' is empty"),
    "one label": (re.sub(",[01]\n", ",1\n", GOOD), f"{FILE}, column 'y' .lines 2 to 41.: every label is '1'"),
    "no column of the label": (with_row(header="n,city,day,z\n"), f"{FILE}, line 1: there is no label column 'y'"),
    "a label with a typing error": (with_row("1.5,oslo,2024-01-01,l\n"), f"{FILE}, line 22, column 'y': the label 'l' is not a number"),
    "a label beyond int64": (with_row(f"1.5,oslo,2024-01-01,{2**63}\n"), f"{FILE}, line 22, column 'y': the class {2**63} is beyond"),
    "a web page": ("<!DOCTYPE html>\n<html>404, not found</html>\n", f"{FILE}, line 1: the file is a web page"),
    "JSON": ('[{"n": 1, "y": 2}]', f"{FILE}, line 1: the file is JSON"),
    "JSON by line": ('{"n": 1, "y": 2}\n' * 30, f"{FILE}, line 1: the file is JSON"),
    "a PDF": (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", f"{FILE}, line 1: the file is a PDF"),
    "an archive": (zipped("data.csv", GOOD), f"{FILE}, line 1: the file is a ZIP archive. Unpack it .`unzip FILE`."),
    "Excel": (zipped("[Content_Types].xml", "<Types/>"), f"{FILE}, line 1: the file is an Excel file. Save its sheet as CSV"),
    "Excel by another program": (zipped("xl/worksheets/sheet1.xml", "<x/>"), f"{FILE}, line 1: the file is an Excel file"),
    "LibreOffice": (zipped("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), f"{FILE}, line 1: .* an OpenDocument spreadsheet. Save its sheet"),
    "half of an archive": (zipped("data.csv", GOOD)[:9], f"{FILE}, line 1: the file is a ZIP archive"),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(200), f"{FILE}, line 1: the file is an old Excel file .*Save its sheet as CSV"),
    "a pointer of Git LFS": ("version https://git-lfs.github.com/spec/v1\noid sha256:4d\n", f"{FILE}, line 1: .*git lfs pull"),
    "gzip by another name": (gzip.compress(GOOD.encode()), f"{FILE}, line 1: .* gzip"),
    "Parquet by another name": (b"PAR1\x15\x04", f"{FILE}, line 1: .* a Parquet file"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), f"{FILE}, line 1: .* holds a NUL .*iconv -f utf-16"),
    "half a character of UTF-16": (GOOD.encode("utf-16")[:-1], f"{FILE}, line 41: the file is not utf-16 text"),
    "UTF-32": (GOOD.encode("utf-32"), f"{FILE}, line 1: .* holds a NUL"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WHOLE)
def test_a_file_is_refused_with_its_place(tmp_path, read_as_a_run, kind):
    content, said, *other = WHOLE[kind]
    path = write(tmp_path, content)
    assert re.search(said, refusal(read_as_a_run, path))
    if other == ["left out"]:
        assert "line 42: 1 cell" in read_as_a_run(path, on_bad_row="quarantine").notes
    else:
        message = refusal(read_as_a_run, path, on_bad_row="quarantine")
        assert re.search(other[0] if other else said.replace("the quoted", ".* quoted"), message)


# Row, note of the plan or the copy, and the value of its cells in the tf.Example.
NOTED = {
    "text among numbers": ("many,oslo,2024-01-01,1\n", "column 'n': .* 1 of 41 cells is not such a number and counts as missing, .* line 22: 'many'", b"many"),
    "a number with its unit": ("1.5 km,oslo,2024-01-01,1\n", "column 'n': .* counts as missing, .* line 22: '1.5 km'", b"1.5 km"),
    "an error of a spreadsheet": ("#DIV/0!,oslo,2024-01-01,1\n", "column 'n': .* counts as missing, .* line 22: '#DIV/0!'", b"#DIV/0!"),
    "a decimal comma": ('"1,5",oslo,2024-01-01,1\n', "column 'n': .* counts as missing, .* line 22: '1,5'", b"1,5"),
    "an underscore in a number": ("1_000,oslo,2024-01-01,1\n", "column 'n': .* counts as missing, .* line 22: '1_000'", b"1_000"),
    "a hexadecimal number": ("0x10,oslo,2024-01-01,1\n", "column 'n': .* counts as missing, .* line 22: '0x10'", b"0x10"),
    "Arabic digits": ("٣,oslo,2024-01-01,1\n", "column 'n': .* counts as missing, .* line 22: '٣'", "٣".encode()),
    "a minus of typography": ("−3,oslo,2024-01-01,1\n", "'n' is stored as text: 1 of 41 .* line 22: '−3'", "−3".encode()),
    "a number beyond float64": ("1e400,oslo,2024-01-01,1\n", "'n': 1 number that float32 cannot hold counts as missing.* line 22: '1e400'", float("inf")),
    "an infinite number": ("-inf,oslo,2024-01-01,1\n", "'n': 1 number that float32 cannot hold .* line 22: '-inf'", float("-inf")),
    "an integer beyond int64": (f"{2**63},oslo,2024-01-01,1\n", f"'n' is stored as text: .* line 22: '{2**63}'", str(2**63).encode()),
    "an integer below int64": (f"{-2**63 - 1},oslo,2024-01-01,1\n", f"'n' is stored as text: .* line 22: '{-2**63 - 1}'", str(-2**63 - 1).encode()),
    "a date in another format": ("1.5,oslo,01.02.2024,1\n", "column 'day': .* counts as missing, .* line 22: '01.02.2024'", 1.5),
    "a month that is none": ("1.5,oslo,2024-13-45,1\n", "column 'day': .* counts as missing, .* line 22: '2024-13-45'", 1.5),
    "a day that is none": ("1.5,oslo,2024-02-30,1\n", "1 of 241 cells is not in the calendar .* line 22: '2024-02-30'", 1.5),
    "a row without a label": ("1.5,oslo,2024-01-01,\n", "1 row without a value in 'y' is left out", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOTED)
def test_a_cell_is_read_and_noted_with_its_place(tmp_path, read_as_a_run, kind):
    row, note, value = NOTED[kind]
    # A day that is not in the calendar is a mistake where it is one of a hundred.
    many = ROWS * 5 if "calendar" in note else ()
    found = read_as_a_run(write(tmp_path, with_row(row) + "".join(many)))
    assert re.search(note, found.notes)
    assert found.num_rows == 40 + (value is not None) + len(many)
    if value is not None:
        assert found.values["n"][LINE - 2] == value


def packed(content, codec):
    with pa.BufferOutputStream() as out:
        with pa.CompressedOutputStream(out, codec) as stream:
            stream.write(as_bytes(content))
        return out.getvalue().to_pybytes()


def parquet(**columns):
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": [0.5, 1.5], "y": [0, 1], **columns}), out)
    return out.getvalue().to_pybytes()


GZIP = gzip.compress(GOOD.encode())
DAMAGED = "It is damaged or incomplete, or has the wrong suffix: download it again"

# Files of a folder, of which the first one is read, or all if the name of the kind starts with "folder".
FILES = {
    "gzip that is cut": ({"a.csv.gz": GZIP[:-30]}, rf"a\.csv\.gz cannot be unpacked .*{DAMAGED}"),
    "gzip without its last bytes": ({"a.csv.gz": GZIP[:-4]}, rf"a\.csv\.gz cannot .*{DAMAGED}"),
    "gzip with a wrong sum": ({"a.csv.gz": GZIP[:-8] + b"0000" + GZIP[-4:]}, rf"a\.csv\.gz cannot .*{DAMAGED}"),
    "gzip that is none": ({"a.csv.gz": GOOD}, rf"a\.csv\.gz cannot .*{DAMAGED}"),
    "gzip and garbage": ({"a.csv.gz": GZIP + b"garbage"}, rf"a\.csv\.gz cannot .*{DAMAGED}"),
    "gzip in gzip": ({"a.csv.gz": gzip.compress(GZIP)}, r"a\.csv\.gz, line 1: the file is compressed with gzip"),
    "gzip of nothing": ({"a.csv.gz": gzip.compress(b"")}, r"a\.csv\.gz, line 1: a header line"),
    "zstd that is cut": ({"a.csv.zst": packed(GOOD, "zstd")[:-10]}, rf"a\.csv\.zst cannot .*{DAMAGED}"),
    "zstd that is none": ({"a.csv.zst": GOOD}, rf"a\.csv\.zst cannot .*{DAMAGED}"),
    "bzip2 that is cut": ({"a.csv.bz2": bz2.compress(GOOD.encode())[:-10]}, rf"a\.csv\.bz2 cannot .*{DAMAGED}"),
    "bzip2 that is none": ({"a.csv.bz2": GOOD}, rf"a\.csv\.bz2 cannot .*{DAMAGED}"),
    "xz": ({"a.csv.xz": b"\xfd7zXZ\0\0"}, r"a\.csv\.xz, line 1: .* compressed with xz"),
    "Parquet that is cut": ({"a.parquet": parquet()[:-40]}, rf"a\.parquet cannot be read .*[^.]\. {DAMAGED}"),
    "Parquet that is none": ({"a.parquet": GOOD}, rf"a\.parquet cannot be read .*{DAMAGED}"),
    "Parquet without rows": ({"a.parquet": parquet(n=pa.array([], pa.float32()), y=pa.array([], pa.int8()))}, r"a\.parquet: there is no row"),
    "Parquet of lists": ({"a.parquet": parquet(l=[[1], [2]])}, r"a\.parquet: column 'l' holds list<.* leave the column out"),
    "Parquet beyond int64": ({"a.parquet": parquet(u=pa.array([1, 2**63], pa.uint64()))}, r"a\.parquet: column 'u' of uint64 .*9223372036854775808"),
    "Parquet of bytes": ({"a.parquet": parquet(b=[b"\xff", b""])}, r"a\.parquet: column 'b' of binary .* UTF8"),
    "Parquet with a NUL": ({"a.parquet": parquet(t=["a\0b", "c"])}, r"a\.parquet, line 2, column 3: .* holds a NUL"),
    "folder with another column": ({"a.csv": GOOD, "b.csv": with_row(header="n,city,hour,y\n")}, r"b\.csv, line 1: .* it lacks 'day' and it adds 'hour'"),
    "folder with another order": ({"a.csv": GOOD, "b.csv": with_row(header="city,n,day,y\n")}, r"b\.csv, line 1: .* column 1 is 'city', not 'n'"),
    "folder with capital letters": ({"a.csv": GOOD, "b.csv": with_row(header="N,city,day,y\n")}, r"b\.csv, line 1: .* it lacks 'n' and it adds 'N'"),
    "folder with another delimiter": ({"a.csv": GOOD, "b.csv": GOOD.replace(",", ";")}, r"b\.csv, line 1: .* adds 'n;city;day;y'"),
    "folder with an empty file": ({"a.csv": GOOD, "b.csv": ""}, r"b\.csv is empty"),
    "folder with a header alone": ({"a.csv": GOOD, "b.csv": HEADER}, r"b\.csv: there is a header \(line 1\) but no row"),
    "folder with a file without header": ({"a.csv": GOOD, "b.csv": "".join(ROWS)}, r"b\.csv, line 1: the header differs"),
    "folder with the same rows twice": ({"a.csv": GOOD, "a.csv.gz": GZIP}, r"a\.csv and a\.csv\.gz seem to be the same rows"),
    "folder with Parquet and CSV": ({"a.csv": GOOD, "b.parquet": parquet()}, r"b\.parquet is a Parquet file, and there are CSV files"),
    "folder with a ZIP": ({"a.csv": GOOD, "b.csv.zip": "PK"}, r"holds b\.csv\.zip, which is compressed"),
    "folder without any": ({"a.txt": GOOD}, r"has no \*\.csv file \(it holds a\.txt\)"),
    "folder of a hidden file": ({".a.csv": GOOD}, r"has no \*\.csv file"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_files_are_refused_with_their_place(tmp_path, read_as_a_run, kind):
    files, said = FILES[kind]
    for name, content in files.items():
        write(tmp_path, content, name)
    path = tmp_path if kind.startswith("folder") else tmp_path / next(iter(files))
    assert re.search(said, refusal(read_as_a_run, path))
    assert re.search(said, refusal(read_as_a_run, path, on_bad_row="quarantine"))


def test_a_short_row_in_gzip_is_refused_with_its_place_or_left_out(tmp_path, read_as_a_run):
    path = write(tmp_path, gzip.compress((GOOD + "1.5\n").encode()), "a.csv.gz")
    assert re.search(r"a\.csv\.gz, line 42 .*1 field where", refusal(read_as_a_run, path))
    found = read_as_a_run(path, on_bad_row="quarantine")
    assert found.num_rows == 40
    assert re.search(r"left out: 1 row .*a\.csv\.gz, line 42: 1 cell", found.notes)


def test_text_that_a_configured_encoding_does_not_fit_is_refused(tmp_path, read_as_a_run):
    path = write(tmp_path, b"n,y\n\x81,1\n")
    said = refusal(read_as_a_run, path, encoding="cp1252")
    assert re.search(f"{FILE}, line 2: the file is not cp1252 text.*set data.encoding", said)


def test_files_of_other_types_are_noted(tmp_path, read_as_a_run):
    write(tmp_path, GOOD, "a.csv")
    write(tmp_path, HEADER + "".join(f"no. {row}" for row in ROWS), "b.csv")
    found = read_as_a_run(tmp_path)
    assert re.search(r"column 'n' holds numbers in \S+a\.csv and other text in \S+b\.csv; it is", found.notes)
    assert found.values["n"][0] == b"0.5"


def _link(place):
    place.symlink_to("nowhere.csv")


def _loop(place):
    place.symlink_to(place.name)


PLACES = {
    "a link that leads nowhere": (_link, "is a symbolic link that leads nowhere"),
    "a link to itself": (_loop, "is a symbolic link that leads nowhere, or back to itself"),
    "a pipe": (os.mkfifo, "is a pipe or a device. Give a file"),
    "a folder": (os.mkdir, r"has no \*\.csv file \(it is empty\)"),
    "nothing": (lambda place: None, "There is no file or folder"),
}


@pytest.mark.parametrize("kind", PLACES)
def test_places_that_are_no_files_are_refused(tmp_path, read_as_a_run, kind):
    make, said = PLACES[kind]
    make(tmp_path / "data.csv")
    assert re.search(said, refusal(read_as_a_run, tmp_path / "data.csv"))
    write(tmp_path, GOOD, "other.csv")
    if kind == "nothing":
        assert read_as_a_run(tmp_path).num_rows == 40
    else:
        assert re.search(r"data\.csv is a ", refusal(read_as_a_run, tmp_path))


def test_a_path_that_the_system_does_not_take_is_refused(tmp_path, read_as_a_run):
    for name, said in {"a" * 300: "File name too long", "a\0": "There is no file or folder"}.items():
        assert said in refusal(read_as_a_run, tmp_path / f"{name}.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all files")
def test_a_file_without_permission_is_refused(tmp_path, read_as_a_run):
    path = write(tmp_path, GOOD)
    path.chmod(0)
    assert re.search(f"{FILE} cannot be read: Permission denied", refusal(read_as_a_run, path))


def test_a_row_with_a_million_fields_is_refused_and_does_not_end_the_process(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("a,y\n" + "1,0\n" * 100 + "," * 1_000_000 + "\n")
    with pytest.raises(BadInputError, match=r"line 102 .*: 1000001 fields"):
        profile_csv([file])
