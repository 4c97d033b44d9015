import gzip
import io
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data import profile, reading
from pipelines.data.dialect import detect_dialect
from pipelines.data.profile import profile_clean_files, profile_csv
from pipelines.errors import BadInputError
from pipelines.runs.plan.data_plan import plan_data, read_data


def carefully(files):
    """Returns the profile that the checks make one by one; None if the files are refused."""
    try:
        return profile_csv(files, detect_dialect(files))
    except BadInputError:
        return None


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 256)
    monkeypatch.setattr(profile, "MAX_LINES", 3)
    monkeypatch.setattr(profile, "_HEAD_BLOCK_BYTES", 16)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ordinary_files_are_profiled_at_once(tmp_path, small_blocks, end, mark):
    rows = [f'{number},"é, {number % 3}",{number / 7}' for number in range(50)]
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_bytes(end.join([f"{mark}n,t,x", *rows, ""]).encode())
    found = profile_clean_files(files)
    assert found is not None
    assert found == carefully(files)
    assert (found.num_rows, found.has_byte_order_mark) == (100, bool(mark))


def test_of_long_lines_a_bounded_beginning_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "_MIN_HEAD_BYTES", 8 << 10)
    monkeypatch.setattr(profile, "_HEAD_BLOCK_BYTES", 1 << 10)
    file = tmp_path / "data.csv"
    names = [f"x{number}" for number in range(300)]
    rows = [";".join(f"{row / (number + 1):.3f}" for number in range(300)) for row in range(80)]
    file.write_text("\n".join([";".join(names), *rows, ""]))
    with file.open("rb") as stream:
        assert 50 < profile._Text(stream).head.count(b"\n") < 60
    found = profile_clean_files([file])
    assert found is not None
    assert found == carefully([file])
    assert found.dialect.delimiter == ";"
    monkeypatch.setattr(profile, "_HEAD_BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(profile, "_MAX_HEAD_BYTES", 8 << 10)
    assert len(profile._Text(io.BytesIO(b"x" * 100_000)).head) == 8 << 10


@pytest.mark.more
def test_any_text_is_profiled_as_the_checks_do_it_or_not_at_all(tmp_path, small_blocks):
    draw = random.Random(7)
    file = tmp_path / "data.csv"
    pieces = [
        "1", "é", ",", '"', '""', "\n", "\r", "\r\n", " ", "x,2\n", '"a\nb",3\n', "a,b\n", "\ufeff", "\0",
    ]  # fmt: skip
    num_found = 0
    for _ in range(400):
        body = "".join(draw.choices(pieces[: draw.choice((3, 10, 14))], k=draw.randrange(30)))
        text = "a,b\n" + "1,2\n" * draw.randrange(30) + body
        file.write_bytes(text.encode()[: draw.randrange(20, 300)])
        found = profile_clean_files([file])
        if found is not None:
            num_found += 1
            assert found == carefully([file]), file.read_bytes()
    assert num_found > 50


def test_what_the_files_hold_decides_whether_a_closer_look_is_taken(tmp_path):
    file = tmp_path / "data.csv"
    for content, is_enough in {
        b"n,t\n1,a\n": True,
        b'n,t\n1,"a\nb"\n': True,
        b'n,t\n1,5" disk\n': True,
        b'n,t\n1,"a"b\n': False,
        b"n,t\n1,a\n2\n": False,
        b"n,t\n1,\xe9\n": False,
        b"n,t\n1,\0\n": False,
        b"n,t\n1,a\rb\n": False,
        b'n,t\n1,"a\rb"\n': False,
        b"n,t\n1,a\nn,t\n": False,
        b"n,t\n1," + b"x" * 131_073 + b"\n": False,
        "n,t\n1,a\n".encode("utf-16"): False,
        b"": False,
    }.items():
        file.write_bytes(content)
        assert (profile_clean_files([file]) is not None) == is_enough, content[:20]


def opened(path, monkeypatch, **settings):
    """Returns how often each file is opened for a plan."""
    opens, original = Counter(), Path.open

    def counted(self, *arguments, **named):
        opens[self.name] += 1
        return original(self, *arguments, **named)

    config = PipelineConfig.model_validate({"data": {"path": str(path), "label": "y", **settings}})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", counted)
        plan_data(config, read_data(config))
    return opens


def rows(number):
    draw = random.Random(2)
    return "id,t,y\n" + "".join(f"{place},{draw.random()},{draw.randrange(2)}\n" for place in range(number))


@pytest.mark.parametrize("mode", ["fail", "quarantine"])
def test_a_plan_opens_each_file_once_however_many_values_a_column_has(tmp_path, monkeypatch, mode):
    (tmp_path / "a.csv").write_text(rows(25_000))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(rows(30).encode()))
    found = opened(tmp_path, monkeypatch, on_bad_row=mode)
    # A file that has just been written is hashed again: its times may hide a change.
    assert all(1 <= found[name] <= 2 for name in ("a.csv", "b.csv.gz"))
    monkeypatch.setattr("pipelines.data.file_states._SETTLING_NS", 0)
    found = opened(tmp_path, monkeypatch, on_bad_row=mode)
    assert (found["a.csv"], found["b.csv.gz"]) == (1, 1)


def test_parquet_files_are_profiled_as_the_checks_do_it(tmp_path):
    file = tmp_path / "data.parquet"
    pq.write_table(pa.table({"n": [1, 2], "t": ['a "b"\nc', None]}), file)
    assert profile_clean_files([file]) == carefully([file])
