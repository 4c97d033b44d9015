import csv
import hashlib
import io
import random

import pyarrow as pa
import pytest

from components.errors import SettingError
from components.example_gen import csv_file
from components.example_gen.csv_file import CsvFile, csv_bytes, read_names


def write(folder, content):
    """Returns a CSV file with this content."""
    path = folder / "data.csv"
    path.write_bytes(content)
    return CsvFile(str(path), hashlib.sha256(content).hexdigest(), read_names(str(path)))


def rows_of(file, columns=None):
    return [
        tuple(row)
        for block in file.blocks(columns)
        for row in zip(*(cells.to_pylist() for cells in block.columns), strict=True)
    ]


# The rows below the header, by hand.
LEGAL = {
    b"a,b\n1,2\n": [("1", "2")],
    b"a,b\n1,2": [("1", "2")],
    b"a,b\n": [],
    b"a,b": [],
    b"a,b\r\n1,2\r\n\r\n3,4\r\n": [("1", "2"), ("3", "4")],
    b"a,b\r1,2\r3,4\r": [("1", "2"), ("3", "4")],
    b"a,b\n\n\n1,2\n\n": [("1", "2")],
    b'a,b\n,\n"",""\n': [("", ""), ("", "")],
    b'a\n\n""\n \nx\n': [("",), (" ",), ("x",)],
    b'a,b\n"1,5","x\ny"\n"x\r\ny","\r"\n': [("1,5", "x\ny"), ("x\r\ny", "\r")],
    b'a,b\n"say ""hi""",2\n': [('say "hi"', "2")],
    b'a,b\n5" tube,a"b"\n': [('5" tube', 'a"b"')],
    b'a,b\n"x"y"z",2\n': [('xy"z"', "2")],
    b"a,b\n \"x\",'y'\n": [(' "x"', "'y'")],
    b'a,b\n1,"open\n': [("1", "open\n")],
    b"a,b\n 1 ,\t2\n": [(" 1 ", "\t2")],
    b"a,b\n# no comment,2\n": [("# no comment", "2")],
    b"a;b\n1;2\n": [("1;2",)],
    b"a,b\nx\0y,\xc3\xa9\n": [("x\0y", "é")],
    b"a,b\nNA,null\n": [("NA", "null")],
    b"\xef\xbb\xbfa,b\n\xef\xbb\xbf1,2\n": [("\ufeff1", "2")],
    b"a, b \n1,2\n": [("1", "2")],
    b'"a",b\n1,2\n': [("1", "2")],
    b'"a",b\n' + b"1,2\n" * 9: [("1", "2")] * 9,
    b"\na\n1\n": [("a",), ("1",)],  # the first line is the header, even without a name
    b"a,b\n" + b"x" * 131_072 + b",2\n": [("x" * 131_072, "2")],
    b"a,b\n" + "é".encode() * 131_072 + b",2\n1,2\n": [("é" * 131_072, "2"), ("1", "2")],
}


@pytest.mark.parametrize("block_bytes", [12, 40, 1 << 20])
@pytest.mark.parametrize("content", LEGAL, ids=lambda content: repr(content[:30]))
def test_legal_files_have_these_rows(tmp_path, monkeypatch, content, block_bytes):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", block_bytes)
    file = write(tmp_path, content)
    assert rows_of(file) == LEGAL[content]
    assert rows_of(file, [len(file.names) - 1]) == [row[-1:] for row in LEGAL[content]]


def test_a_line_break_in_quotes_may_be_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 20)
    for size in range(20):
        file = write(tmp_path, b'a\n"' + b"x" * size + b'\r\n"\n1\n')
        assert rows_of(file) == [("x" * size + "\r\n",), ("1",)]


@pytest.mark.parametrize(("num_columns", "num_rows_of_block"), [(400, 5), (1_000, 4), (4_000, 4)])
def test_a_wide_table_has_larger_blocks(tmp_path, monkeypatch, num_columns, num_rows_of_block):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 4_000)
    names = ",".join(map(str, range(num_columns)))
    rows = ",".join("1" * num_columns) + "\n"
    file = write(tmp_path, f"{names}\n{rows * 20}".encode())
    assert {len(block) for block in list(file.blocks())[1:-1]} == {num_rows_of_block}


FAULTS = {
    b"a,b\n1,2\n3\n": r"data\.csv, line 3: 1 cell where the header has 2; .* no value for column 'b'",
    b"a,b\n1,2\n\n3,4,5\n": r"line 4: 3 cells where the header has 2; '5' follows the last column 'b'",
    b'a,b\n"1\n1",2\n3,4,5\n': "line 4: 3 cells",
    b"a,b\n1,2\n \n": "line 3: 1 cell ",
    b"a,b\n1,2\n\xc3\xa9,\xe9t\xe9\n": r"line 3, column 'b': byte 0xe9 is not UTF-8 text",
    b"a,b\n\xed\xa0\x80,2\n": r"line 2, column 'a': byte 0xed is not UTF-8 text",
    b"a,b\n1,2\n1," + b"x" * 131_073 + b"\n": r"line 3: field larger than field limit \(131072\)",
    b'a,b\n1,"' + b"3,4\n" * 40_000: r"line 2: field larger than field limit",
    b'a,"b,c"\n1,2\n': r"line 2: 2 cells where the header has 3",
}


@pytest.mark.parametrize("block_bytes", [12, 1 << 20])
@pytest.mark.parametrize("content", FAULTS, ids=lambda content: repr(content[:30]))
def test_faults_have_their_line(tmp_path, monkeypatch, content, block_bytes):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", block_bytes)
    with pytest.raises(SettingError, match=FAULTS[content]):
        rows_of(write(tmp_path, content))


def test_any_bytes_are_read_as_the_csv_module_reads_them(tmp_path, monkeypatch):
    draw = random.Random(4)
    num_legal = 0
    for _ in range(300):
        monkeypatch.setattr(csv_file, "_BLOCK_BYTES", draw.choice([30, 80, 1 << 20]))
        size = draw.randrange(40)
        body = "".join(draw.choices(["a", "é", ",", '"', "\n", "\r", "\r\n", " ", "1,2\n"], k=size))
        text = draw.choice(["a,b\n", "a\r\n", "a,b,c\r"]) + body
        _, *expected = csv.reader(io.StringIO(text, newline=""))
        expected = [tuple(row) for row in expected if row]
        file = write(tmp_path, text.encode())
        if all(len(row) == len(file.names) for row in expected):
            num_legal += 1
            assert rows_of(file) == expected, text
        else:
            with pytest.raises(SettingError, match="where the header has"):
                rows_of(file)
    assert num_legal > 30


def test_a_file_of_many_blocks_goes_on_by_row_behind_a_block_that_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 100)
    long = "x" * 500  # more than a block of pyarrow's holds
    rows = [(str(number), long if number in (50, 51) else "é") for number in range(100)]
    file = write(tmp_path, b"a,b\n" + "".join(f"{a},{b}\n" for a, b in rows).encode())
    sizes = [len(block) for block in file.blocks()]
    assert sum(sizes) == 100
    assert len(sizes) > 5
    assert rows_of(file) == rows
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 1 << 20)
    assert rows_of(file) == rows


def test_another_content_than_the_planned_one_is_an_error(tmp_path):
    for content in (b"a,b\n1,2\n", b'a,b\n1,"2\n', b'"a",b\n1,2\n'):
        file = write(tmp_path, content)
        for other in (content.replace(b"1", b"3"), content + b"5,6\n", content.replace(b"b", b"c")):
            (tmp_path / "data.csv").write_bytes(other)
            with pytest.raises(SettingError, match=r"data\.csv was changed after"):
                rows_of(file)


@pytest.mark.parametrize(("suffix", "codec"), [("csv.gz", "gzip"), ("csv.zst", "zstd"), ("csv.bz2", "bz2")])
def test_compressed_files_are_unpacked(tmp_path, monkeypatch, suffix, codec):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 50)
    expected = [(str(number), "x\r\ny" if number % 7 == 0 else "é") for number in range(200)]
    text = "a,b\r\n" + "".join(f'{a},"{b}"\r\n' for a, b in expected)
    with pa.output_stream(str(tmp_path / "plain"), compression=codec) as stream:
        stream.write(text.encode())
    packed = (tmp_path / "plain").read_bytes()
    assert packed != text.encode()
    path = tmp_path / f"data.{suffix}"

    def read(content):
        path.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        return rows_of(CsvFile(str(path), sha256, read_names(str(path))))

    assert read(packed) == expected
    assert csv_bytes(str(path), 100) == 800
    assert csv_bytes("data.csv", 100) == 100
    for broken in (packed[:-12], b"a,b\r\n1,2\r\n"):
        with pytest.raises(SettingError, match=f"{suffix} cannot be unpacked with {codec}"):
            read(broken)
    file = CsvFile(str(path), "0" * 64, ("a", "b"))
    path.write_bytes(packed)
    with pytest.raises(SettingError, match="was changed after"):
        rows_of(file)


def test_names_need_a_line_of_text(tmp_path):
    with pytest.raises(SettingError, match=r"data\.csv is empty"):
        write(tmp_path, b"")
    with pytest.raises(SettingError, match=r"data\.csv, line 1: byte 0xe9 is not UTF-8"):
        write(tmp_path, b"\xe9t\xe9,b\n1,2\n")
