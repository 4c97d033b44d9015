import bz2
import csv
import datetime
import decimal
import gzip
import io
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.errors import SettingError
from components.example_gen import csv_text
from components.example_gen.cells import ColumnType
from components.example_gen.csv_text import as_csv, known_types

NOON = datetime.datetime(2024, 1, 31, 12, 0, 5)


def text(path):
    with path.open("rb") as stream:
        return as_csv(str(path), stream).read()


def rows(path):
    return list(csv.reader(io.StringIO(text(path).decode(), newline="")))


def parquet(folder, **columns):
    path = folder / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


PACKERS = {"a.csv": bytes, "a.CSV.gz": gzip.compress, "a.csv.bz2": bz2.compress, "a.csv.zst": zstd}


@pytest.mark.parametrize("name", PACKERS)
def test_a_compressed_csv_is_unpacked_and_other_content_than_the_name_says_is_refused(tmp_path, name):
    content = b"a,b\n" + b"1,2\n" * 100_000
    (tmp_path / name).write_bytes(PACKERS[name](content))
    assert text(tmp_path / name) == content
    other = name if name != "a.csv" else "a.parquet"
    (tmp_path / other).write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SettingError, match=rf"{re.escape(other)} cannot be (unpacked with|read as Parquet)"):
        text(tmp_path / other)


@pytest.mark.parametrize(("name", "pack"), [("a.csv", bytes), ("a.csv.gz", gzip.compress)])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_that_does_not_end_is_refused_by_its_number(tmp_path, monkeypatch, name, pack, end):
    monkeypatch.setattr(csv_text, "MAX_LINE_BYTES", 1_000)
    monkeypatch.setattr(csv_text, "_CHUNK_BYTES", 256)
    lines = [b"a,b", b"1,2", b"3," + b"x" * 700, b"4," + b"x" * 990, b"5,6"]
    content = end.join([*lines, b""])
    (tmp_path / name).write_bytes(pack(content))
    assert text(tmp_path / name) == content
    lines[3] += b"x" * 600
    (tmp_path / name).write_bytes(pack(end.join(lines)))
    with pytest.raises(SettingError, match=rf"{re.escape(name)}, line 4: the line is longer than the limit"):
        text(tmp_path / name)


EMPTY, INTEGER, FLOAT, TEXT = ColumnType
SEVEN = pa.array([decimal.Decimal(7), None, decimal.Decimal(10**17)], pa.decimal128(18, 0))
ZONED = pa.array([NOON, None, None], pa.timestamp("s", "Europe/Berlin"))
# Column, its cells, its type.
COLUMNS = {
    "whole": (pa.array([-(2**63), 2**63 - 1, None]), (str(-(2**63)), str(2**63 - 1), ""), INTEGER),
    "small": (pa.array([1, 2, 3], pa.uint8()), ("1", "2", "3"), INTEGER),
    "real": (pa.array([1.0, 0.1, None]), ("1", "0.1", ""), FLOAT),
    "single": (pa.array([0.1, float("inf"), 1e20], pa.float32()), ("0.1", "inf", "1e+20"), FLOAT),
    "price": (pa.array([*map(decimal.Decimal, ("1.50", "-20.00")), None]), ("1.50", "-20.00", ""), FLOAT),
    "key": (SEVEN, ("7", "", "100000000000000000"), INTEGER),
    "yes": (pa.array([True, False, None]), ("true", "false", ""), TEXT),
    "zip": (pa.array(["02134", 'a "b",\r\nc', ""]), ("02134", 'a "b",\r\nc', ""), TEXT),
    "word": (pa.array(["x", None, "x"]).dictionary_encode(), ("x", "", "x"), TEXT),
    "code": (pa.array([1, None, 1], pa.int32()).dictionary_encode(), ("1", "", "1"), INTEGER),
    "raw": (pa.array([b"\xc3\xa9", None, b""]), ("é", "", ""), TEXT),
    "day": (pa.array([NOON.date(), None, None]), ("2024-01-31", "", ""), TEXT),
    "time": (pa.array([NOON, None, None], pa.timestamp("s")), ("2024-01-31 12:00:05.000", "", ""), TEXT),
    "zoned": (ZONED, ("2024-01-31 13:00:05.000+0100", "", ""), TEXT),
    "never": (pa.nulls(3), ("", "", ""), EMPTY),
}


def test_the_cells_and_types_of_a_parquet_file(tmp_path):
    path = parquet(tmp_path, **{name: column for name, (column, _, _) in COLUMNS.items()})
    header, *found = rows(path)
    by_name = dict(zip(header, zip(*found, strict=True), strict=True))
    assert by_name == {name: cells for name, (_, cells, _) in COLUMNS.items()}
    with path.open("rb") as stream:
        types = known_types(str(path), stream)
    assert types == {name: kind for name, (_, _, kind) in COLUMNS.items()}


def test_a_row_of_one_missing_value_is_a_row(tmp_path):
    assert text(parquet(tmp_path, x=pa.array([None, 1, None, None]))) == b'x\n""\n"1"\n""\n""\n'


@pytest.mark.parametrize(
    ("name", "column", "match"),
    [
        ("x", pa.array([[1], [2]]), r"column 'x' holds list<.*>, which is not supported"),
        ("x", pa.array([{"a": 1}]), r"column 'x' holds struct<a: int64>"),
        ("x", pa.array([2**63], pa.uint64()), r"column 'x' of uint64 has a value .* 9223372036854775808"),
        ("x", pa.array([b"\xff"]), r"column 'x' of binary has a value .* UTF-8"),
        ("x", pa.array([1], pa.duration("s")), r"column 'x' holds duration\[s\]"),
        ("a,b", [1], r"name of the column 'a,b' holds a comma"),
    ],
)
def test_what_no_csv_can_have_is_refused_by_its_name(tmp_path, name, column, match):
    with pytest.raises(SettingError, match=match):
        text(parquet(tmp_path, **{name: column}))
