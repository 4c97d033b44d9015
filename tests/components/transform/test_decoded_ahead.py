import itertools
import pickle
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.beam import record_files
from components.transform.decoded_ahead import DecodedAhead
from components.transform.ordered_source import OrderedExampleRecord, ReadWithKeys
from tests.components.conftest import example

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
FEATURE = 'feature { name: "%s" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }'
SCHEMA = text_format.Parse("".join(FEATURE % name for name in "xyz"), schema_pb2.Schema())
NUM_ROWS = 20_000  # batches of 8,192, 8,192 and 3,616


def write(path, first, num_rows=NUM_ROWS):
    """Writes examples in which x counts from a number on, y is -x and z is 0."""
    rows = ({"x": x, "y": -x, "z": 0} for x in range(first, first + num_rows))
    record_files.write_records(str(path), map(example, rows))
    return str(path)


def columns(*names):
    schema = schema_pb2.Schema()
    schema.feature.extend(part for part in SCHEMA.feature if part.name in names)
    return schema.SerializeToString()


def rows(ahead, path):
    """Returns the values of x in each batch of a file."""
    return [batch.column("x").flatten().to_pylist() for batch in ahead.read(path)]


@pytest.fixture
def paths(tmp_path):
    return [write(tmp_path / "a.gz", first=0), write(tmp_path / "b.gz", first=50_000)]


def test_all_batches_can_be_read_several_times(paths):
    ahead = DecodedAhead(columns("x", "y"), paths)
    for _ in range(2):
        for path, first in zip(paths[::-1], (50_000, 0), strict=True):
            batches = rows(ahead, path)
            assert [len(batch) for batch in batches] == [8_192, 8_192, 3_616]
            assert list(itertools.chain.from_iterable(batches)) == list(range(first, first + NUM_ROWS))
            assert ahead.is_whole(path)
    assert rows(ahead, "another file") == []
    assert not ahead.is_whole("another file")
    ahead.close()


def test_no_more_than_the_given_size_is_kept(paths):
    first = next(DecodedAhead(columns("x", "y"), paths).read(paths[0]))
    ahead = DecodedAhead(columns("x", "y"), paths, max_bytes=2 * first.nbytes + 1)
    assert [len(batch) for batch in rows(ahead, paths[0])] == [8_192, 8_192]
    assert rows(ahead, paths[1]) == []
    assert not ahead.is_whole(paths[0])
    ahead.close()


def test_a_broken_file_is_left_to_its_reader(paths, tmp_path):
    content = Path(paths[0]).read_bytes()
    broken = tmp_path / "broken.gz"
    broken.write_bytes(content[: len(content) // 2])
    ahead = DecodedAhead(columns("x"), [str(broken), paths[1]])
    assert not ahead.is_whole(str(broken))
    assert rows(ahead, paths[1]) == []
    reader = ReadWithKeys(columns("x"), 8_192, ahead)
    with pytest.raises(EOFError):
        list(reader.process((0, str(broken))))
    ahead.close()


@pytest.mark.parametrize("max_bytes", [1 << 30, 300_000, 0])
def test_a_reader_gets_the_same_batches_with_fewer_columns(paths, max_bytes):
    ahead = DecodedAhead(columns("x", "y"), paths, max_bytes)
    reader = ReadWithKeys(columns("y"), 8_192, ahead)
    for file in enumerate(paths):
        expected = list(ReadWithKeys(columns("y"), 8_192).process(file))
        assert list(reader.process(file)) == expected
        assert len(expected) == 3
    ahead.close()


def test_a_copy_in_another_process_decodes_for_itself(paths):
    ahead = DecodedAhead(columns("x", "y"), paths)
    reader = ReadWithKeys(columns("x"), 8_192, ahead)
    copy = pickle.loads(pickle.dumps(reader))
    assert list(copy.process((1, paths[1]))) == list(reader.process((1, paths[1])))
    records = OrderedExampleRecord(paths, schema=SCHEMA, ahead=lambda: ahead)
    with beam.Pipeline(RUNNER) as pipeline:
        batches = pipeline | records.Project(["x"]).BeamSource()
        values = batches | beam.FlatMap(lambda batch: batch.column("x").flatten().to_pylist())
        sums = values | beam.CombineGlobally(sum)
        assert_that(sums, equal_to([sum(range(NUM_ROWS)) + sum(range(50_000, 50_000 + NUM_ROWS))]))
    ahead.close()
