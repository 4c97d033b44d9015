import pyarrow as pa
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.transform.packed_source import PackedExampleRecord, make_matrices, pack_batch

SCHEMA = text_format.Parse(
    """
    feature { name: "a" type: FLOAT } feature { name: "b" type: INT } feature { name: "c" type: FLOAT }
    feature { name: "d" type: BYTES } feature { name: "y" type: BYTES }
    """,
    schema_pb2.Schema(),
)
PACKS = {"p": ["c", "b", "a"], "q": ["d", "b"]}
BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([[1.0], None, [2.0]], pa.large_list(pa.float32())),
        pa.array([None, None, [3]], pa.large_list(pa.int64())),
        pa.array([[4.0], None, []], pa.large_list(pa.float32())),
        pa.array([[b"x"], [b""], None], pa.large_list(pa.large_binary())),
        pa.array([[b"0"], [b"1"], [b"0"]], pa.large_list(pa.large_binary())),
    ],
    names=["a", "b", "c", "d", "y"],
)


def test_the_cells_of_a_row_are_side_by_side_with_their_positions():
    packed = pack_batch(BATCH, make_matrices(PACKS, SCHEMA))
    empty = pack_batch(BATCH.slice(0, 0), make_matrices(PACKS, SCHEMA))
    assert (empty.num_rows, empty.schema) == (0, packed.schema)
    # Within a row, values come in the order of the positions.
    assert packed.to_pydict() == {
        "y": [[b"0"], [b"1"], [b"0"]],
        "p/float32/positions": [[0, 2], [], [2]],
        "p/float32": [[4, 1], [], [2]],
        "p/int64/positions": [[], [], [1]],
        "p/int64": [[], [], [3]],
        "q/string/positions": [[0], [0], []],
        "q/string": [[b"x"], [b""], []],
        "q/int64/positions": [[], [], [1]],
        "q/int64": [[], [], [3]],
    }


def test_tensors_are_sparse_matrices_a_projection_keeps_what_it_names_and_other_columns_are_refused():
    source = PackedExampleRecord(["none"], SCHEMA, PACKS)
    specs = source.TensorAdapter().TypeSpecs()
    assert specs["p/float32"] == tf.SparseTensorSpec([None, 3], tf.float32)
    assert specs["q/int64"] == tf.SparseTensorSpec([None, 2], tf.int64)
    assert sorted(specs) == ["p/float32", "p/int64", "q/int64", "q/string", "y"]
    projected = source.Project(["q/string", "y"])
    assert sorted(projected.TensorAdapter().TypeSpecs()) == ["q/string", "y"]
    assert len(projected.ArrowSchema()) == 4  # with the key of the batch
    assert projected.TensorAdapter().OriginalTypeSpecs() == specs
    adapter = PackedExampleRecord(["none"], SCHEMA, PACKS).TensorAdapter()
    assert adapter.TypeSpecs() == specs
    with pytest.raises(ValueError, match="Received: 'z'"):
        make_matrices({"p": ["z"]}, SCHEMA)
