"""Signatures of a SavedModel, and the columns that they take, read without loading the model.

The columns are those that the model itself parses: the key and the type of each feature are in its graph.
They are those of the schema that this version was trained with, even after a rollback, or after the root's
schema was edited.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2

from pipelines.data.formats.cell_format import CellFormat, TextFormat, read_formats, read_text_formats
from pipelines.errors import BadInputError

ColumnType = Literal["INT", "FLOAT", "BYTES"]
"""Types of a schema: whole numbers, numbers, and text."""

SERVING_ROWS = "serving_rows"
"""Name of the signature that takes raw columns as tensors, where a missing value has a mark."""

_TAG = "serve"
_DEFAULT = "serving_default"
_INTERNAL = ("__saved_model_init_op", "__saved_model_train_op")
_PARSING = "ParseExampleV2"


@dataclass(frozen=True)
class Column:
    """A raw column that a signature takes."""

    name: str
    type: ColumnType
    is_required: bool = False  # True if each row needs a value
    takes_one: bool = False  # True if the model refuses several values in a row
    # Format of the numbers or dates of a column of text; None for other columns, and where it is unknown
    format: CellFormat | None = None
    text_format: TextFormat | None = None  # Format of the cells of another column of text, if it is known


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: Any  # Type of the elements
    shape: tuple[int | None, ...] | None  # Sizes, None where a size is unknown; None for an unknown rank

    def takes(self, shape: Sequence[int]) -> bool:
        """Returns whether values of this shape fit."""
        wanted = shape if self.shape is None else self.shape
        return len(wanted) == len(shape) and all(
            size in (None, actual) for size, actual in zip(wanted, shape, strict=True)
        )


@dataclass(frozen=True)
class Signature:
    name: str
    method: str  # `classify`, `regress` or `predict`; may be something else in a model of another program
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    # Columns by name; empty if the signature takes neither tf.Examples nor one tensor a column.
    columns: Mapping[str, Column]
    takes_examples: bool  # True if the input is serialized tf.Examples, whose features are the columns
    proto: Any = field(repr=False, compare=False)  # `SignatureDef` as it stands in the file


def read_signatures(folder: Path) -> dict[str, Signature]:
    """Returns the signatures of a SavedModel by name, `serving_default` first."""
    graph = _serving_graph(folder)
    names = sorted(set(graph.signature_def) - set(_INTERNAL), key=lambda name: (name != _DEFAULT, name))
    if not names:
        raise BadInputError(f"The model in {folder} has no signature. Export it with one.")
    try:
        formats, text_formats = read_formats(folder), read_text_formats(folder)
    except ValueError as error:
        raise BadInputError(str(error)) from error
    signatures = {name: _signature(name, graph.signature_def[name], graph.graph_def) for name in names}
    rows = signatures[SERVING_ROWS].columns if SERVING_ROWS in signatures else {}
    return {
        name: replace(
            signature,
            columns={
                key: replace(
                    column,
                    takes_one=column.takes_one or key in rows or key in formats,
                    format=formats.get(key) if column.type == "BYTES" else None,
                    text_format=text_formats.get(key) if column.type == "BYTES" else None,
                )
                for key, column in signature.columns.items()
            },
        )
        for name, signature in signatures.items()
    }


def _serving_graph(folder: Path) -> Any:
    proto = saved_model_pb2.SavedModel()
    binary = folder / "saved_model.pb"
    try:
        if binary.exists():
            proto.ParseFromString(binary.read_bytes())
        else:
            text_format.Parse((folder / "saved_model.pbtxt").read_text(), proto)
    except Exception as error:  # protobuf's DecodeError, too, which has no public name
        raise BadInputError(f"{folder} holds no SavedModel that can be read: {error}") from error
    for graph in proto.meta_graphs:
        if _TAG in graph.meta_info_def.tags:
            return graph
    raise BadInputError(f"The model in {folder} has no graph with the tag {_TAG!r}.")


def _signature(name: str, proto: Any, graph: Any) -> Signature:
    inputs, outputs = (
        {key: _tensor(key, info) for key, info in sorted(side.items())}  # a proto's map has no order
        for side in (proto.inputs, proto.outputs)
    )
    columns: dict[str, Column] = {}
    takes_examples = False
    if len(inputs) == 1:
        ((key, tensor),) = inputs.items()
        if tensor.dtype == tf.string and tensor.shape is not None and len(tensor.shape) == 1:
            columns = _parsed_columns(graph, proto.inputs[key].name)
            takes_examples = bool(columns)
    if not takes_examples and all(_is_column(tensor) for tensor in inputs.values()):
        columns = {
            key: Column(key, _type(tensor.dtype), name != SERVING_ROWS, takes_one=True)
            for key, tensor in inputs.items()
        }
    return Signature(
        name=name,
        method=proto.method_name.rpartition("/")[2],
        inputs=inputs,
        outputs=outputs,
        columns=columns,
        takes_examples=takes_examples,
        proto=proto,
    )


def _tensor(name: str, info: Any) -> Tensor:
    shape = None
    if not info.tensor_shape.unknown_rank:
        shape = tuple(None if dim.size < 0 else int(dim.size) for dim in info.tensor_shape.dim)
    return Tensor(name, tf.as_dtype(info.dtype), shape)


def _is_column(tensor: Tensor) -> bool:
    """Returns whether a tensor holds one value for each row."""
    dtype = tensor.dtype
    return (
        (dtype == tf.string or dtype.is_floating or dtype.is_integer)
        and tensor.shape is not None
        and tensor.shape[:1] in ((None,), (1,))
        and tensor.shape[1:] in ((), (1,))
    )


def _type(dtype: Any) -> ColumnType:
    if dtype == tf.string:
        return "BYTES"
    return "INT" if dtype.is_integer else "FLOAT"


def _parsed_columns(graph: Any, placeholder: str) -> dict[str, Column]:
    """Returns the columns that a graph parses out of a tensor of serialized tf.Examples.

    A model of Keras parses in a function, where the tensor has another name.
    """
    fed = placeholder.partition(":")[0]
    nodes = {node.name: node for node in graph.node}
    parsing = [node for node in graph.node if node.op == _PARSING and _source(node, 0, nodes) == fed]
    columns = {column.name: column for node in parsing for column in _columns(node, nodes)}
    if not columns:
        for function in graph.library.function:
            inner = {node.name: node for node in function.node_def}
            for node in function.node_def:
                if node.op == _PARSING:
                    columns.update({column.name: column for column in _columns(node, inner)})
    return dict(sorted(columns.items()))


def _source(node: Any, position: int, nodes: Mapping[str, Any]) -> str:
    """Returns the name of the node that feeds an input, skipping identities."""
    name = str(node.input[position]).partition(":")[0]
    while name in nodes and nodes[name].op == "Identity":
        name = str(nodes[name].input[0]).partition(":")[0]
    return name


def _columns(node: Any, nodes: Mapping[str, Any]) -> Iterator[Column]:
    """Yields the columns of a `ParseExampleV2`: its inputs are the texts, names, keys, and defaults."""
    keys = [_constant(node, position, nodes) for position in (2, 3, 4)]
    types = [node.attr[name].list.type for name in ("sparse_types", "Tdense", "ragged_value_types")]
    for kind, (names, dtypes) in enumerate(zip(keys, types, strict=True)):
        for index, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
            is_dense = kind == 1
            is_required = is_dense and not _has_default(node, 5 + index, nodes)
            takes_one = False
            if is_dense:
                shape = node.attr["dense_shapes"].list.shape[index]
                num_values = math.prod(dim.size for dim in shape.dim)
                takes_one = not shape.unknown_rank and num_values == 1
            yield Column(name.decode(), _type(tf.as_dtype(dtype)), is_required, takes_one)


def _has_default(node: Any, position: int, nodes: Mapping[str, Any]) -> bool:
    """Returns whether a dense feature has a default: an empty constant stands for none."""
    source = nodes[_source(node, position, nodes)]
    return source.op != "Const" or tf.make_ndarray(source.attr["value"].tensor).size > 0


def _constant(node: Any, position: int, nodes: Mapping[str, Any]) -> list[Any]:
    source = nodes[_source(node, position, nodes)]
    values: Iterable[Any] = tf.make_ndarray(source.attr["value"].tensor).ravel()
    return list(values)
