"""Gives `preprocessing_fn` many columns as one sparse matrix, so that its graph does not grow with them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from components.beam.example_batches import ReadBatches
from components.transform.ordered_source import OrderedExampleRecord, ReadWithKeys
from estimator_core.export.packs import Packs, columns_by_type

_DTYPES = {schema_pb2.INT: tf.int64, schema_pb2.FLOAT: tf.float32, schema_pb2.BYTES: tf.string}


@dataclass(frozen=True)
class Matrix:
    """A sparse matrix `[batch_size, num_columns]` that some columns of one type fill."""

    name: str  # Name of the matrix, and of the column of its values in a packed record batch
    columns: tuple[str, ...]
    positions: tuple[int, ...]
    num_columns: int

    @property
    def positions_name(self) -> str:
        """Name of the column with the positions of the values in a packed record batch."""
        return f"{self.name}/positions"


class PackedExampleRecord(OrderedExampleRecord):
    """tf.Examples of TFRecord files whose packed columns are the sparse matrices of `parse_packed`."""

    def __init__(
        self, file_pattern: Any, schema: schema_pb2.Schema, packs: Packs, telemetry_descriptors: Any = None
    ) -> None:
        packed = {column for columns in packs.values() for column in columns}
        super().__init__(
            file_pattern,
            schema=_with_features(schema, lambda name: name not in packed),
            telemetry_descriptors=telemetry_descriptors,
        )
        self._schema_for_decoding = schema
        self._matrices = make_matrices(packs, schema)

    def ArrowSchema(self) -> pa.Schema:  # noqa: N802
        return _packed_schema(super().ArrowSchema(), self._matrices)

    def TensorRepresentations(self) -> dict[str, Any]:  # noqa: N802
        """Returns the representations of the columns outside of packs, and of the matrices."""
        representations = dict(super().TensorRepresentations())
        for matrix in self._matrices:
            representations[matrix.name] = schema_pb2.TensorRepresentation(
                sparse_tensor=schema_pb2.TensorRepresentation.SparseTensor(
                    dense_shape={"dim": [{"size": matrix.num_columns}]},
                    index_column_names=[matrix.positions_name],
                    value_column_name=matrix.name,
                    already_sorted=True,
                )
            )
        return representations

    def _reader(self, schema: bytes | None, max_examples: int) -> ReadBatches:
        return _ReadPacked(schema, max_examples, self._matrices)

    def _ProjectImpl(self, tensor_names: list[str]) -> "PackedExampleRecord":  # noqa: N802
        projected = copy.copy(self)
        projected._matrices = tuple(part for part in self._matrices if part.name in tensor_names)
        packed = {name for matrix in projected._matrices for name in matrix.columns}
        others = set(tensor_names)
        projected._schema = _with_features(self._schema, lambda name: name in others)
        projected._schema_for_decoding = _with_features(
            self._schema_for_decoding, lambda name: name in packed or name in others
        )
        return projected


def make_matrices(packs: Packs, schema: schema_pb2.Schema) -> tuple[Matrix, ...]:
    """Returns the matrices of packs: one for each type of the columns in a pack."""
    dtypes = {part.name: _DTYPES[part.type] for part in schema.feature if part.type in _DTYPES}
    return tuple(
        Matrix(name, tuple(columns[at] for at in positions), tuple(positions), len(columns))
        for pack, columns in packs.items()
        for name, positions in columns_by_type(pack, columns, dtypes).items()
    )


def pack_batch(batch: pa.RecordBatch, matrices: Sequence[Matrix]) -> pa.RecordBatch:
    """Returns a record batch in which positions and values replace the columns of a matrix."""
    schema = _packed_schema(batch.schema, matrices)
    columns = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
    for matrix in matrices:
        cells = pa.concat_arrays([columns[name] for name in matrix.columns])
        sizes = pc.fill_null(pc.list_value_length(cells), 0).to_numpy(zero_copy_only=False)
        numbers, rows = np.divmod(np.repeat(np.arange(len(cells)), sizes), max(1, len(batch)))
        order = np.argsort(rows, kind="stable")
        ends = np.cumsum(np.bincount(rows, minlength=len(batch)))
        offsets = pa.array(np.concatenate([[0], ends]), pa.int64())
        positions = np.array(matrix.positions, np.int64)[numbers[order]]
        columns[matrix.positions_name] = pa.LargeListArray.from_arrays(offsets, pa.array(positions))
        columns[matrix.name] = pa.LargeListArray.from_arrays(offsets, cells.flatten().take(pa.array(order)))
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _packed_schema(schema: pa.Schema, matrices: Sequence[Matrix]) -> pa.Schema:
    packed = {name for matrix in matrices for name in matrix.columns}
    fields = [field for field in schema if field.name not in packed]
    for matrix in matrices:
        fields.append(pa.field(matrix.positions_name, pa.large_list(pa.int64())))
        fields.append(pa.field(matrix.name, schema.field(matrix.columns[0]).type))
    return pa.schema(fields)


def _with_features(schema: schema_pb2.Schema, keeps: Callable[[str], bool]) -> schema_pb2.Schema:
    """Returns a schema with only the features whose names are kept."""
    reduced = copy.deepcopy(schema)
    del reduced.feature[:]
    reduced.feature.extend(part for part in schema.feature if keeps(part.name))
    return reduced


@beam.typehints.with_output_types(pa.RecordBatch)
class _ReadPacked(ReadWithKeys):
    """(number of a file, its path) -> its record batches, with matrices and the column `BATCH_KEY`."""

    def __init__(self, schema: bytes | None, max_examples: int, matrices: Sequence[Matrix]) -> None:
        super().__init__(schema, max_examples)
        self._matrices = matrices

    def _placed(self, batch: Any, file_number: int, batch_number: int) -> Any:
        return pack_batch(super()._placed(batch, file_number, batch_number), self._matrices)
