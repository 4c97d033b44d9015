import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from apache_beam.testing.util import assert_that, equal_to
from google.protobuf import text_format

from components.errors import SettingError
from components.example_gen import reading
from components.example_gen.example_encoder import serialize
from components.example_gen.files import PlannedFiles
from components.example_gen.reading import read_batches

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def example(text):
    return text_format.Parse(text, tf.train.Example())


def examples(batch):
    return [tf.train.Example.FromString(row) for rows in serialize(batch) for row in rows.to_pylist()]


def test_a_column_has_one_type_in_all_splits_and_text_stays_text(tmp_path):
    (tmp_path / "train.csv").write_text('zip,size,word,gone\n02134,1,"a,\n""b""",\n')
    (tmp_path / "eval.csv").write_text("zip,size,word,gone\n10001,,,\n\n99999,2.5,é,\n")
    patterns = {"train": "train.csv", "eval": "e*.csv"}
    with beam.Pipeline(RUNNER) as pipeline:
        parts = read_batches(pipeline, str(tmp_path), patterns, ["zip"])
        expected = {
            "train": [
                """features {
                  feature { key: "zip" value { bytes_list { value: "02134" } } }
                  feature { key: "size" value { float_list { value: 1 } } }
                  feature { key: "word" value { bytes_list { value: "a,\\n\\"b\\"" } } }
                  feature { key: "gone" value { } }
                }"""
            ],
            "eval": [
                """features {
                  feature { key: "zip" value { bytes_list { value: "10001" } } }
                  feature { key: "size" value { float_list { } } }
                  feature { key: "word" value { bytes_list { } } }
                  feature { key: "gone" value { } }
                }""",
                """features {
                  feature { key: "zip" value { bytes_list { value: "99999" } } }
                  feature { key: "size" value { float_list { value: 2.5 } } }
                  feature { key: "word" value { bytes_list { value: "\\303\\251" } } }
                  feature { key: "gone" value { } }
                }""",
            ],
        }
        for name, texts in expected.items():
            found = parts[name] | f"Examples[{name}]" >> beam.FlatMap(examples)
            assert_that(found, equal_to([example(text) for text in texts]), label=name)


def test_whole_numbers_are_float32_where_that_is_asked_for(tmp_path):
    (tmp_path / "data.csv").write_text("fare,size,word\n7,3,9\n,4,x\n")
    with beam.Pipeline(RUNNER) as pipeline:
        floats = ["fare", "word"]
        parts = read_batches(pipeline, str(tmp_path), {"all": "data.csv"}, [], floats)
        expected = [
            """features {
              feature { key: "fare" value { float_list { value: 7 } } }
              feature { key: "size" value { int64_list { value: 3 } } }
              feature { key: "word" value { bytes_list { value: "9" } } }
            }""",
            """features {
              feature { key: "fare" value { float_list { } } }
              feature { key: "size" value { int64_list { value: 4 } } }
              feature { key: "word" value { bytes_list { value: "x" } } }
            }""",
        ]
        found = parts["all"] | beam.FlatMap(examples)
        assert_that(found, equal_to([example(text) for text in expected]))


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
        rows = [("02134", "value: 1"), ("7", ""), ("02134", "value: 2"), ("7", "value: 0.5")]
        expected = [
            f"""features {{
              feature {{ key: "zip" value {{ bytes_list {{ value: "{zip_code}" }} }} }}
              feature {{ key: "size" value {{ float_list {{ {size} }} }} }}
            }}"""
            for zip_code, size in rows
        ]
        found = parts["all"] | beam.FlatMap(examples)
        assert_that(found, equal_to([example(text) for text in expected]))


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


def test_given_types_save_a_pass_and_have_to_hold_all_cells(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text("n,x,t,gone\n1,2,3,\n4,0.5,z,\n")
    monkeypatch.setattr(reading, "_infer_types", None)

    def read(**types):
        given = {"n": "integer", "x": "float", "t": "text", "gone": "empty", **types}
        with beam.Pipeline(RUNNER) as pipeline:
            files = {"all": "data.csv"}
            parts = read_batches(pipeline, str(tmp_path), files, [], ["n"], column_types=given)
            expected = [
                f"""features {{
                  feature {{ key: "n" value {{ float_list {{ value: {n} }} }} }}
                  feature {{ key: "x" value {{ float_list {{ value: {x} }} }} }}
                  feature {{ key: "t" value {{ bytes_list {{ value: "{t}" }} }} }}
                  feature {{ key: "gone" value {{ }} }}
                }}"""
                for n, x, t in ((1, 2, 3), (4, 0.5, "z"))
            ]
            found = parts["all"] | beam.FlatMap(examples)
            assert_that(found, equal_to([example(text) for text in expected]))

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
