"""Gives each batch of tf.Examples a key, by which the transformed rows are put in order again."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from tfx_bsl.coders import example_coder

from components.beam.example_batches import MAX_BATCH_EXAMPLES, BatchedExampleRecord, ReadBatches
from components.transform.decoded_ahead import DecodedAhead

# Not imported from there: after components.install(), TFX's executor brings ours, which needs this module. A
# worker of Beam imports this module first.
BATCH_KEY = "__TFT_PASS_KEY__"
"""Name of the column in TFX's executor that identifies the batch of a row."""

_BATCHES_PER_FILE_BITS = 32
_KEY_FIELD = pa.field(BATCH_KEY, pa.large_list(pa.int64()))


def batch_key(file_number: int, batch_number: int) -> int:
    """Returns the key of a batch: keys sort by file, then by batch within the file."""
    return file_number << _BATCHES_PER_FILE_BITS | batch_number


def file_number(key: int) -> int:
    """Returns the number of the file that a batch came from."""
    return key >> _BATCHES_PER_FILE_BITS


class OrderedExampleRecord(BatchedExampleRecord):
    """tf.Examples of TFRecord files, in batches with a key.

    A batch has rows of one file only, and the same rows on every engine.
    """

    def __init__(
        self, *args: Any, ahead: Callable[[], DecodedAhead | None] = lambda: None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._ahead = ahead

    def ArrowSchema(self) -> pa.Schema:  # noqa: N802
        return super().ArrowSchema().append(_KEY_FIELD)

    def _reader(self, schema: bytes | None, max_examples: int) -> ReadBatches:
        ahead = self._ahead() if max_examples == MAX_BATCH_EXAMPLES else None
        return ReadWithKeys(schema, max_examples, ahead)

    def _ProjectImpl(  # noqa: N802
        self, tensor_names: list[str]
    ) -> "OrderedExampleRecord":
        projected = super()._ProjectImpl(tensor_names)
        return OrderedExampleRecord(
            self._file_pattern,
            schema=projected._schema,
            telemetry_descriptors=self.telemetry_descriptors,
            ahead=self._ahead,
        )


@beam.typehints.with_output_types(pa.RecordBatch)
class ReadWithKeys(ReadBatches):
    """(number of a file, its path) -> its record batches, with the column `BATCH_KEY`.

    `ahead` has batches that are already decoded; a copy of this step in another process has none.
    """

    def __init__(self, schema: bytes | None, max_examples: int, ahead: DecodedAhead | None = None) -> None:
        super().__init__(schema, max_examples)
        self._ahead = ahead

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ahead": None}

    def _batches(self, path: str, first: int = 0) -> Iterator[pa.RecordBatch]:
        if self._ahead is not None:
            names = example_coder.ExamplesToRecordBatchDecoder(self._schema).ArrowSchema().names
            for batch in itertools.islice(self._ahead.read(path), first, None):
                yield batch.select(names)
                first += 1
            if self._ahead.is_whole(path):
                return
        yield from super()._batches(path, first)

    def _placed(self, batch: Any, file_number: int, batch_number: int) -> Any:
        keys = np.full(len(batch), batch_key(file_number, batch_number))
        column = pa.LargeListArray.from_arrays(np.arange(len(batch) + 1), keys)
        return pa.RecordBatch.from_arrays([*batch.columns, column], schema=batch.schema.append(_KEY_FIELD))
