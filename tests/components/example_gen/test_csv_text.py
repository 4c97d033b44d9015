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


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.csv", bytes),
        ("a.CSV.gz", gzip.compress),
        ("a.csv.bz2", bz2.compress),
        ("a.csv.zst", lambda content: pa.compress(content, "zstd", asbytes=True)),
    ],
)
def test_a_compressed_csv_is_unpacked(tmp_path, name, pack):
    content = b"a,b\n" + b"1,2\n" * 100_000
    (tmp_path / name).write_bytes(pack(content))
    assert text(tmp_path / name) == content


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


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zst", "a.csv.bz2"])
def test_another_content_than_the_name_says_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SettingError, match=rf"{re.escape(name)} cannot be unpacked with"):
        text(tmp_path / name)
    (tmp_path / "a.parquet").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(SettingError, match=r"a\.parquet cannot be read as Parquet"):
        text(tmp_path / "a.parquet")


def test_the_cells_and_types_of_a_parquet_file(tmp_path):
    path = parquet(
        tmp_path,
        whole=pa.array([-(2**63), 2**63 - 1, None]),
        small=pa.array([1, 2, 3], pa.uint8()),
        real=pa.array([1.0, 0.1, None]),
        single=pa.array([0.1, float("inf"), 1e20], pa.float32()),
        price=pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-20.00")]),
        key=pa.array([decimal.Decimal(7), None, decimal.Decimal(10**17)], pa.decimal128(18, 0)),
        yes=pa.array([True, False, None]),
        zip=pa.array(["02134", 'a "b",\r\nc', ""]),
        word=pa.array(["x", None, "x"]).dictionary_encode(),
        code=pa.array([1, None, 1], pa.int32()).dictionary_encode(),
        raw=pa.array([b"\xc3\xa9", None, b""]),
        day=pa.array([NOON.date(), None, None]),
        time=pa.array([NOON, None, None], pa.timestamp("s")),
        zoned=pa.array([NOON, None, None], pa.timestamp("s", "Europe/Berlin")),
        never=pa.nulls(3),
    )
    header, *found = rows(path)
    by_name = dict(zip(header, zip(*found, strict=True), strict=True))
    assert by_name == {
        "whole": ("-9223372036854775808", "9223372036854775807", ""),
        "small": ("1", "2", "3"),
        "real": ("1", "0.1", ""),
        "single": ("0.1", "inf", "1e+20"),
        "price": ("1.50", "", "-20.00"),
        "key": ("7", "", "100000000000000000"),
        "yes": ("true", "false", ""),
        "zip": ("02134", 'a "b",\r\nc', ""),
        "word": ("x", "", "x"),
        "code": ("1", "", "1"),
        "raw": ("é", "", ""),
        "day": ("2024-01-31", "", ""),
        "time": ("2024-01-31 12:00:05.000", "", ""),
        "zoned": ("2024-01-31 13:00:05.000+0100", "", ""),
        "never": ("", "", ""),
    }
    with path.open("rb") as stream:
        types = known_types(str(path), stream)
    assert [name for name in types if types[name] is ColumnType.INTEGER] == [
        "whole", "small", "key", "code",
    ]  # fmt: skip
    assert [name for name in types if types[name] is ColumnType.FLOAT] == [
        "real", "single", "price",
    ]  # fmt: skip
    assert types["never"] is ColumnType.EMPTY
    assert types["zip"] is types["raw"] is types["time"] is types["yes"] is ColumnType.TEXT


def test_a_row_of_one_missing_value_is_a_row(tmp_path):
    assert text(parquet(tmp_path, x=pa.array([None, 1, None, None]))) == b'x\n""\n"1"\n""\n""\n'


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([[1], [2]]), r"column 'x' holds list<.*>, which is not supported"),
        (pa.array([{"a": 1}]), r"column 'x' holds struct<a: int64>"),
        (pa.array([2**63], pa.uint64()), r"column 'x' of uint64 has a value .* 9223372036854775808"),
        (pa.array([b"\xff"]), r"column 'x' of binary has a value .* UTF-8"),
        (pa.array([1], pa.duration("s")), r"column 'x' holds duration\[s\]"),
    ],
)
def test_a_column_without_cells_is_refused_by_its_name(tmp_path, column, match):
    with pytest.raises(SettingError, match=match):
        text(parquet(tmp_path, x=column))


def test_a_name_that_no_csv_can_have_is_refused(tmp_path):
    path = parquet(tmp_path, **{"a,b": [1]})
    with pytest.raises(SettingError, match=r"name of the column 'a,b' holds a comma"):
        text(path)
