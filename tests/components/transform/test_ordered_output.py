import random

import apache_beam as beam
import pyarrow as pa
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.coders import example_coder

from components.beam import record_files
from components.transform import ordered_output, ordered_source

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
NAMES = [f"feature_{number}" for number in range(12)]
SCHEMA = schema_pb2.Schema()
for feature in NAMES:
    SCHEMA.feature.add(name=feature, type="INT").shape.dim.add(size=1)


def batch(rows, key, key_of_one_row=False):
    column = pa.array([[row] for row in rows], pa.large_list(pa.int64()))
    columns = dict.fromkeys(NAMES, column)
    keys = pa.array([[key]] * (1 if key_of_one_row else len(rows)), pa.large_list(pa.int64()))
    if key_of_one_row:
        return pa.RecordBatch.from_pydict(columns), {ordered_source.BATCH_KEY: keys}
    return pa.RecordBatch.from_pydict({**columns, ordered_source.BATCH_KEY: keys}), {}


def write(folder, batches, num_files):
    split = folder / "Split-train"
    split.mkdir(parents=True)
    with beam.Pipeline(RUNNER) as pipeline:
        writer = ordered_output.WriteInOrder(SCHEMA, str(split / "rows"), num_files)
        _ = pipeline | beam.Create(batches) | writer
    return {file.name: file.read_bytes() for file in sorted(split.iterdir())}


def values(path):
    examples = map(tf.train.Example.FromString, record_files.read_records(str(path)))
    return [example.features.feature["feature_3"].int64_list.value[0] for example in examples]


def test_rows_are_in_the_order_of_their_batches_whenever_these_come(tmp_path):
    keys = [ordered_source.batch_key(file, number) for file in (0, 2) for number in range(4)]
    batches = [batch([10 * at, 10 * at + 1], key, at == 5) for at, key in enumerate(keys)]
    expected = write(tmp_path / "one", batches, num_files=3)
    random.Random(2).shuffle(batches)
    assert write(tmp_path / "other", batches, num_files=3) == expected
    assert list(expected) == [f"rows-0000{number}-of-00003.gz" for number in range(3)]
    found = [values(tmp_path / "one" / "Split-train" / name) for name in expected]
    assert found == [[0, 1, 10, 11, 20, 21, 30, 31], [], [40, 41, 50, 51, 60, 61, 70, 71]]


def test_parts_of_a_batch_that_was_cut_have_one_order_and_empty_files_are_written(tmp_path):
    parts = [batch([row], 7) for row in range(5)]
    expected = write(tmp_path / "one", parts, num_files=1)
    assert write(tmp_path / "other", parts[::-1], num_files=1) == expected
    assert sorted(values(tmp_path / "one" / "Split-train" / "rows-00000-of-00001.gz")) == [*range(5)]
    empty = write(tmp_path / "empty", [], num_files=2)
    assert [values(tmp_path / "empty" / "Split-train" / name) for name in empty] == [[], []]


def test_features_are_sorted():
    first = 'features { feature { key: "a" value { int64_list { value: 1 } } } }'
    second = 'features { feature { key: "b" value { bytes_list { value: "x" } } } }'
    one, other = (text_format.Parse(text, tf.train.Example()).SerializeToString() for text in (first, second))
    # The concatenation of two messages is their merge.
    assert one + other != other + one
    expected = ordered_output.sort_features(one + other)
    assert ordered_output.sort_features(other + one) == expected
    assert expected.index(b"a") < expected.index(b"b")
    assert set(tf.train.Example.FromString(expected).features.feature) == {"a", "b"}


INTS, FLOATS, TEXTS = [[1], [-2], [300]], [[1.5], [-0.0], [1e30]], [[b"a"], [b""], [b"\xff" * 200]]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
@pytest.mark.parametrize(
    ("ints", "floats", "texts"),
    [
        (INTS, FLOATS, TEXTS),
        ([[1], [], [3]], [[], [1.0], []], [[], [], []]),
        ([[1], [2, 3], []], FLOATS, TEXTS),
        (INTS, [[1.0], None, [2.0]], TEXTS),
        ([], [], []),
    ],
)
def test_examples_are_those_of_tfx_bsl_sorted(kind, ints, floats, texts):
    columns = {
        "n": pa.array(ints, kind(pa.int64())),
        "f": pa.array(floats, kind(pa.float32())),
        "name": pa.array(texts, kind(pa.binary())),
        "text": pa.array(texts, kind(pa.large_binary())),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    encoder = example_coder.RecordBatchToExamplesEncoder()
    expected = [ordered_output.sort_features(example) for example in encoder.encode(batch)]
    assert ordered_output.serialize_sorted(batch, None) == expected
