import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.beam import record_files
from components.transform import ordered_source
from tests.components.conftest import example

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
SCHEMA = text_format.Parse(
    """
    feature { name: "x" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
    feature { name: "y" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
    """,
    schema_pb2.Schema(),
)


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_have_rows_of_one_file_and_keys_in_order(tmp_path, workers):
    for number, name in enumerate(("a.gz", "b.gz")):
        record_files.write_records(
            str(tmp_path / name), [example({"x": x, "y": -x}) for x in range(100 * number, 100 * number + 5)]
        )
    records = ordered_source.OrderedExampleRecord(
        [str(tmp_path / "*.gz")], schema=SCHEMA, telemetry_descriptors=["Test"]
    )
    source = records.Project(["x"])
    options = beam.options.pipeline_options.PipelineOptions(
        direct_num_workers=workers, direct_running_mode="multi_threading"
    )
    with beam.Pipeline(RUNNER, options) as pipeline:
        batches = pipeline | source.BeamSource(batch_size=3)
        found = batches | beam.Map(lambda batch: batch.to_pydict())
        second = 1 << 32
        parts = ([0, 1, 2], 0), ([3, 4], 1), ([100, 101, 102], second), ([103, 104], second + 1)
        keys = ordered_source.BATCH_KEY
        rows = [{"x": [[x] for x in part], keys: [[key]] * len(part)} for part, key in parts]
        assert_that(found, equal_to(rows))
    assert source.ArrowSchema().names == ["x", ordered_source.BATCH_KEY]
    assert set(source.TensorRepresentations()) == {"x"}


def test_a_key_tells_the_file():
    keys = [ordered_source.batch_key(file, batch) for file in (0, 7) for batch in (0, 1, 500_000)]
    assert keys == sorted(set(keys))
    assert [ordered_source.file_number(key) for key in keys] == [0, 0, 0, 7, 7, 7]
