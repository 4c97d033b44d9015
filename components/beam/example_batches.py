"""Reads the tf.Examples of TFRecord files in batches that depend on the files alone, not on the engine."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
from tfx.dsl.io import fileio
from tfx_bsl.coders import example_coder
from tfx_bsl.tfxio import tf_example_record

from components.beam import record_files
from components.beam.ahead import map_ahead
from components.beam.spread import Spread

MAX_BATCH_EXAMPLES = 8_192
MAX_BATCH_BYTES = 20 << 20
"""Serialized examples in a batch, in bytes; the same as in tfx-bsl's batches of a fixed size."""


def find_files(patterns: Sequence[str]) -> list[str]:
    files = []
    for pattern in patterns:
        matches = sorted(fileio.glob(pattern))
        if not matches:
            raise FileNotFoundError(f"No file of examples matches {pattern!r}.")
        files += matches
    return files


def batches(
    path: str, max_examples: int = MAX_BATCH_EXAMPLES, max_bytes: int = MAX_BATCH_BYTES
) -> Iterator[list[bytes]]:
    """Yields the records of a file in batches; only a batch of one record may exceed `max_bytes`."""
    batch: list[bytes] = []
    num_bytes = 0
    for record in record_files.read_records(path):
        if batch and (len(batch) == max_examples or num_bytes + len(record) > max_bytes):
            yield batch
            batch, num_bytes = [], 0
        batch.append(record)
        num_bytes += len(record)
    if batch:
        yield batch


class BatchedExampleRecord(tf_example_record.TFExampleRecord):
    """tf.Examples of TFRecord files, in large batches, so that Beam never handles single records.

    Source: `TFExampleRecord` of tfx-bsl 1.21, whose batches depend on how the engine divides the rows
    into bundles.
    """

    def BeamSource(self, batch_size: int | None = None) -> beam.PTransform:  # noqa: N802
        """Returns a transform: pipeline -> record batches of at most `batch_size` examples."""
        files = list(enumerate(find_files(self._file_pattern)))
        schema = self._GetSchemaForDecoding()
        read = self._reader(
            None if schema is None else schema.SerializeToString(), batch_size or MAX_BATCH_EXAMPLES
        )

        @beam.typehints.with_input_types(Any)
        @beam.typehints.with_output_types(pa.RecordBatch)
        def source(pipeline: Any) -> Any:
            return pipeline | "Files" >> Spread(files) | "Read" >> beam.ParDo(read)

        return beam.ptransform_fn(source)()

    def _reader(self, schema: bytes | None, max_examples: int) -> "ReadBatches":
        return ReadBatches(schema, max_examples)


@beam.typehints.with_output_types(pa.RecordBatch)
class ReadBatches(beam.DoFn):
    """(number of a file, its path) -> its record batches; without a schema, types are inferred by batch."""

    def __init__(self, schema: bytes | None, max_examples: int) -> None:
        super().__init__()
        self._schema = schema
        self._max_examples = max_examples

    def process(self, file: tuple[int, str]) -> Iterator[pa.RecordBatch]:
        number, path = file
        for index, batch in enumerate(self._batches(path)):
            yield self._placed(batch, number, index)

    def _batches(self, path: str, first: int = 0) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a file, from batch `first` on."""
        examples = itertools.islice(batches(path, self._max_examples), first, None)
        return map_ahead(self._decode, examples)

    def _decode(self, examples: list[bytes]) -> pa.RecordBatch:
        # A decoder keeps columns while it decodes, so threads cannot share one.
        return example_coder.ExamplesToRecordBatchDecoder(self._schema).DecodeBatch(examples)

    def _placed(self, batch: Any, file_number: int, batch_number: int) -> Any:
        del file_number, batch_number
        return batch
