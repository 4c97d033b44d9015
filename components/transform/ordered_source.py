"""Reads tf.Examples in batches that depend on the files alone, not on the engine."""

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from tfx.components.transform import executor as stock
from tfx.dsl.io import fileio
from tfx_bsl.coders import example_coder
from tfx_bsl.tfxio import tf_example_record

from components.beam import record_files
from components.beam.spread import Spread

BATCH_KEY = stock._TRANSFORM_INTERNAL_FEATURE_FOR_KEY
"""Name of the column in TFX's executor that identifies the batch of a row."""

MAX_BATCH_EXAMPLES = 8_192
MAX_BATCH_BYTES = 20 << 20
"""Serialized examples in a batch, in bytes; the same as in tfx-bsl's batches of a fixed size."""

_BATCHES_PER_FILE_BITS = 32
_KEY_FIELD = pa.field(BATCH_KEY, pa.large_list(pa.int64()))


def batch_key(file_number: int, batch_number: int) -> int:
    """Returns the key of a batch: keys sort by file, then by batch within the file."""
    return file_number << _BATCHES_PER_FILE_BITS | batch_number


def file_number(key: int) -> int:
    """Returns the number of the file that a batch came from."""
    return key >> _BATCHES_PER_FILE_BITS


def find_files(patterns: Sequence[str]) -> list[str]:
    """Returns the files that match patterns, in the order of their numbers.

    Raises:
        FileNotFoundError: A pattern matches none.
    """
    files = []
    for pattern in patterns:
        found = sorted(fileio.glob(pattern))
        if not found:
            raise FileNotFoundError(f"No file of examples matches {pattern!r}.")
        files += found
    return files


class OrderedExampleRecord(tf_example_record.TFExampleRecord):
    """tf.Examples of TFRecord files, in batches with a key.

    A batch has rows of one file only, and the same rows on every engine. tfx-bsl's batches
    depend on how the engine divides the rows into bundles.

    Source: `TFExampleRecord` of tfx-bsl 1.21.
    """

    def BeamSource(self, batch_size: int | None = None) -> beam.PTransform:  # noqa: N802
        """Returns a transform: pipeline -> record batches with the column `BATCH_KEY`.

        Args:
            batch_size: Maximum number of examples in a batch; None for `MAX_BATCH_EXAMPLES`.
        """
        files = list(enumerate(find_files(self._file_pattern)))
        schema = self._GetSchemaForDecoding().SerializeToString()
        read = _ReadBatches(schema, batch_size or MAX_BATCH_EXAMPLES)

        @beam.typehints.with_input_types(Any)
        @beam.typehints.with_output_types(pa.RecordBatch)
        def source(pipeline: Any) -> Any:
            return pipeline | "Files" >> Spread(files) | "Read" >> beam.ParDo(read)

        return beam.ptransform_fn(source)()

    def ArrowSchema(self) -> pa.Schema:  # noqa: N802
        """Returns the schema of the record batches."""
        return super().ArrowSchema().append(_KEY_FIELD)

    def _ProjectImpl(  # noqa: N802
        self, tensor_names: list[str]
    ) -> "OrderedExampleRecord":
        projected = super()._ProjectImpl(tensor_names)
        return OrderedExampleRecord(
            self._file_pattern,
            schema=projected._schema,
            telemetry_descriptors=self.telemetry_descriptors,
        )


@beam.typehints.with_output_types(pa.RecordBatch)
class _ReadBatches(beam.DoFn):
    """(number of a file, its path) -> its record batches."""

    def __init__(self, schema: bytes, max_examples: int) -> None:
        self._schema = schema
        self._max_examples = max_examples

    def setup(self) -> None:
        self._decoder = example_coder.ExamplesToRecordBatchDecoder(self._schema)

    def process(self, file: tuple[int, str]) -> Iterator[pa.RecordBatch]:
        number, path = file
        for index, examples in enumerate(batches(path, self._max_examples)):
            batch = self._decoder.DecodeBatch(examples)
            keys = np.full(len(examples), batch_key(number, index))
            column = pa.LargeListArray.from_arrays(np.arange(len(examples) + 1), keys)
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, column], schema=batch.schema.append(_KEY_FIELD)
            )


def batches(
    path: str, max_examples: int = MAX_BATCH_EXAMPLES, max_bytes: int = MAX_BATCH_BYTES
) -> Iterator[list[bytes]]:
    """Yields the records of a file in batches.

    Args:
        path: Path of the file.
        max_examples: Maximum number of records in a batch.
        max_bytes: Maximum size of a batch of two or more records, in bytes.
    """
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
