"""Writes transformed examples in the order of the input examples, on every engine."""

import hashlib
import itertools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from tfx_bsl.coders import example_coder

from components.beam import record_files
from components.beam.compression import Compressed, compress, decompress
from components.beam.in_threads import InThreads
from components.example_gen.example_encoder import serialize
from components.transform.ordered_source import BATCH_KEY, file_number

_TYPES = {
    pa.float32(): pa.float32(),
    pa.int64(): pa.int64(),
    pa.binary(): pa.binary(),
    pa.large_binary(): pa.binary(),
}
"""Types of values that `serialize` takes, by the type of a column's values."""

Part = tuple[int, bytes, Compressed]
"""Key of a batch, digest of its examples, and the examples."""


class WriteInOrder(beam.PTransform):
    """Writes a file of transformed examples for each file of examples, with the rows in the same order.

    The bytes are reproducible, too: the features of an example are sorted by name.
    """

    def __init__(self, schema: Any, prefix: str, num_files: int) -> None:
        super().__init__()
        self._schema = schema
        self._prefix = prefix
        self._num_files = num_files

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        """Returns the number of each file after it was written.

        The elements are pairs of a record batch and columns of other lengths; one of the two has `BATCH_KEY`.
        """
        no_rows = -1, b"", compress([])
        files = (
            batches.pipeline
            | "Files" >> beam.Create(list(range(self._num_files)), reshuffle=False)
            | "NoRows" >> beam.Map(lambda number: (number, no_rows)).with_output_types(tuple[int, Part])
        )
        parts = batches | "Encode" >> beam.ParDo(_Encode(self._schema)).with_output_types(tuple[int, Part])
        return (
            (files, parts)
            | beam.Flatten()
            | "ByFile" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_Write(self._prefix, self._num_files)).with_output_types(int)
        )


class _Encode(InThreads):
    """Transformed batch -> (number of its file, its part of the file)."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema

    def process(self, element: tuple[Any, dict[str, Any]]) -> Iterator[tuple[int, Part]]:
        batch, others = element
        column = others[BATCH_KEY] if BATCH_KEY in others else batch.column(BATCH_KEY)
        key = int(column.flatten()[0].as_py())  # the same in all rows
        index = batch.schema.get_field_index(BATCH_KEY)
        if index >= 0:
            batch = pa.RecordBatch.from_arrays(
                [column for number, column in enumerate(batch.columns) if number != index],
                schema=batch.schema.remove(index),
            )
        yield from self.submit(_encoded, key, batch, self._schema)


def _encoded(key: int, batch: Any, schema: Any) -> tuple[int, Part]:
    examples = compress(serialize_sorted(batch, schema))
    # A large batch is split into several with the same key.
    digest = hashlib.sha256(examples[1]).digest()
    return file_number(key), (key, digest, examples)


def serialize_sorted(batch: Any, schema: Any) -> list[bytes]:
    """Returns a serialized tf.Example for each row, with its features sorted by name."""
    columns = [_single_values(column) for column in batch.columns]
    if not columns or any(column is None for column in columns):
        encoder = example_coder.RecordBatchToExamplesEncoder(schema)
        return [sort_features(example) for example in encoder.encode(batch)]
    serialized = serialize(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
    return [example for part in serialized for example in part.to_pylist()]


def _single_values(column: Any) -> Any:
    """Returns the value of each row, or null; None if rows have several values or values of other types."""
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    kind = _TYPES.get(column.type.value_type) if is_list else None
    if kind is None or column.null_count:
        return None
    sizes = pc.list_value_length(column).to_numpy()
    values = column.flatten().cast(kind)
    if (sizes == 1).all():
        return values
    if sizes.max(initial=0) > 1:
        return None
    return values.take(pa.array(np.cumsum(sizes) - 1, mask=sizes == 0))


def sort_features(example: bytes) -> bytes:
    """Returns a serialized tf.Example with its features sorted by name."""
    return tf.train.Example.FromString(example).SerializeToString(deterministic=True)


class _Write(InThreads):
    """(number of a file, its parts) -> the number, once the file is written."""

    def __init__(self, prefix: str, num_files: int) -> None:
        self._settings = prefix, num_files

    def process(self, file: tuple[int, Iterable[Part]]) -> Iterator[int]:
        number, parts = file
        yield from self.submit(_write, number, list(parts), *self._settings)


def _write(number: int, parts: list[Part], prefix: str, num_files: int) -> int:
    ordered = sorted(parts, key=operator.itemgetter(0, 1))
    examples = itertools.chain.from_iterable(decompress(part) for _, _, part in ordered)
    record_files.write_records(record_files.numbered(prefix, number, num_files), examples)
    return number
