import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from apache_beam.testing.util import assert_that, equal_to

from components.errors import SettingError
from components.example_gen import reading
from components.example_gen.example_encoder import serialize
from components.example_gen.files import PlannedFiles
from components.example_gen.reading import read_batches

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


KINDS = {int: "int64_list", float: "float_list", str: "bytes_list"}


def example(**features):
    """Returns a tf.Example: of a value, of a type for a list without values, or of None for nothing."""
    result = tf.train.Example()
    for name, value in features.items():
        feature = result.features.feature[name]
        kind = value if isinstance(value, type) else type(value)
        if kind in KINDS:
            values = getattr(feature, KINDS[kind])
            values.SetInParent()
            values.value.extend([] if value is kind else [value.encode() if kind is str else value])
    return result


def examples(batch):
    return [tf.train.Example.FromString(row) for rows in serialize(batch) for row in rows.to_pylist()]


def check(parts, **expected):
    """Compares the examples of each split."""
    for name, rows in expected.items():
        found = parts[name] | f"Examples[{name}]" >> beam.FlatMap(examples)
        assert_that(found, equal_to([example(**row) for row in rows]), label=name)


def test_a_column_has_one_type_in_all_splits_and_text_stays_text(tmp_path):
    (tmp_path / "train.csv").write_text('zip,size,word,gone\n02134,1,"a,\n""b""",\n')
    (tmp_path / "eval.csv").write_text("zip,size,word,gone\n10001,,,\n\n99999,2.5,é,\n")
    patterns = {"train": "train.csv", "eval": "e*.csv"}
    with beam.Pipeline(RUNNER) as pipeline:
        parts = read_batches(pipeline, str(tmp_path), patterns, ["zip"])
        missing = {"zip": "10001", "size": float, "word": str, "gone": None}
        check(
            parts,
            train=[{"zip": "02134", "size": 1.0, "word": 'a,\n"b"', "gone": None}],
            eval=[missing, {"zip": "99999", "size": 2.5, "word": "é", "gone": None}],
        )


def test_whole_numbers_are_float32_where_that_is_asked_for(tmp_path):
    (tmp_path / "data.csv").write_text("fare,size,word\n7,3,9\n,4,x\n")
    with beam.Pipeline(RUNNER) as pipeline:
        floats = ["fare", "word"]
        parts = read_batches(pipeline, str(tmp_path), {"all": "data.csv"}, [], floats)
        second = {"fare": float, "size": 4, "word": "x"}
        check(parts, all=[{"fare": 7.0, "size": 3, "word": "9"}, second])


def test_files_that_cannot_be_read_together(tmp_path):
    (tmp_path / "train.csv").write_text("a,b\n1,2\n")
    (tmp_path / "eval.csv").write_text("b,a\n1,2\n")
    pipeline = beam.Pipeline(RUNNER)
    with pytest.raises(RuntimeError, match="another header"):
        read_batches(pipeline, str(tmp_path), {"train": "train.csv", "eval": "eval.csv"})
    with pytest.raises(RuntimeError, match=r"matches 'x\*' of the split 'eval'"):
        read_batches(pipeline, str(tmp_path), {"eval": "x*"})


def test_the_columns_of_parquet_files_keep_their_types(tmp_path):
    for name, sizes in (("a", pa.array([1, None])), ("b", pa.array([2.0, 0.5]))):
        zips = pa.array(["02134", "7"])
        pq.write_table(pa.table({"zip": zips, "size": sizes}), tmp_path / f"{name}.parquet")
    with beam.Pipeline(RUNNER) as pipeline:
        parts = read_batches(pipeline, str(tmp_path), {"all": "*.parquet"})
        rows = [("02134", 1.0), ("7", float), ("02134", 2.0), ("7", 0.5)]
        check(parts, all=[{"zip": zip_code, "size": size} for zip_code, size in rows])


def test_a_parquet_file_with_another_content_than_planned_is_refused(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), file)
    planned = PlannedFiles(str(tmp_path), ["a.parquet"])
    pq.write_table(pa.table({"x": [2]}), file)
    with (
        pytest.raises(Exception, match="was changed after its fingerprint was taken"),
        beam.Pipeline(RUNNER) as pipeline,
    ):
        read_batches(pipeline, str(tmp_path), {"all": "a.parquet"}, planned=planned)


@pytest.mark.more
def test_given_types_save_a_pass_and_have_to_hold_all_cells(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text("n,x,t,gone\n1,2,3,\n4,0.5,z,\n")
    monkeypatch.setattr(reading, "_infer_types", None)

    def read(**types):
        given = {"n": "integer", "x": "float", "t": "text", "gone": "empty", **types}
        with beam.Pipeline(RUNNER) as pipeline:
            files = {"all": "data.csv"}
            parts = read_batches(pipeline, str(tmp_path), files, [], ["n"], column_types=given)
            rows = [dict(zip("nxt", row, strict=True)) for row in ((1.0, 2.0, "3"), (4.0, 0.5, "z"))]
            check(parts, all=[{**row, "gone": None} for row in rows])

    read()
    for name, wrong in (("t", "integer"), ("x", "integer"), ("t", "float"), ("t", "empty")):
        with pytest.raises(Exception, match=rf"data\.csv: column '{name}' is given as {wrong}, which"):
            read(**{name: wrong})


@pytest.mark.parametrize("types", [{"k": "integer"}, {"k": "integer", "v": "int64"}])
def test_a_column_without_one_of_the_types_is_named(tmp_path, types):
    (tmp_path / "data.csv").write_text("k,v\n1,2\n")
    expected = f"one of empty, integer, float, text. Received for 'v': {types.get('v')!r}"
    with pytest.raises(SettingError, match=expected):
        read_batches(beam.Pipeline(RUNNER), str(tmp_path), {"all": "data.csv"}, column_types=types)
