"""Datasets over arrays that take whole batches of rows instead of single rows.

`Dataset.from_tensor_slices(arrays).shuffle(...).repeat().batch(...)` cuts each array into rows, moves them
one by one, and copies them into batches. Shuffling the row numbers instead, and then gathering the rows of a
batch from each array in one operation, gives the same batches.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1

_SLICES = "TensorSliceDataset"
_BATCHES = ("BatchDataset", "BatchDatasetV2")
# Datasets that drop, repeat or reorder rows by position, regardless of their contents.
_OF_ROWS = (
    "CacheDataset",
    "CacheDatasetV2",
    "PrefetchDataset",
    "RepeatDataset",
    "ShardDataset",
    "ShuffleAndRepeatDataset",
    "ShuffleAndRepeatDatasetV2",
    "ShuffleDataset",
    "ShuffleDatasetV2",
    "ShuffleDatasetV3",
    "SkipDataset",
    "TakeDataset",
)
_CACHES = ("CacheDataset", "CacheDatasetV2")
_KEEPS_ITERATORS = ("SerializeIterator", "DeserializeIterator")
_SMALLEST_BATCH = 16  # for smaller batches, it is not worthwhile


def initializer_by_batch(initializer: tf.Operation) -> tf.Operation:
    """Returns an initializer of the iterator for the same batches, taken whole where that is possible.

    `initializer`: `MakeIterator` operation of the default graph. It is returned unchanged unless the
    dataset batches the rows of arrays, and only selects or orders them before.
    """
    if initializer.type != "MakeIterator":
        return initializer
    dataset, iterator = initializer.inputs
    above, batch = _nearest_dataset(dataset.op, _BATCHES)
    below, slices = _nearest_dataset(batch.inputs[0].op, (_SLICES,)) if batch is not None else ([], None)
    graph = initializer.graph
    if (
        batch is None
        or slices is None
        or not _pays(batch, slices)
        or not all(operation.type in _OF_ROWS and not _is_on_disk(operation) for operation in below)
        or any(operation.control_inputs for operation in (*above, batch, *below, slices))
        or any(operation.type in _KEEPS_ITERATORS for operation in graph.get_operations())
    ):
        return initializer
    with (
        graph.as_default(),
        tf.control_dependencies(None),
        graph.name_scope(None),
        graph.name_scope("rows_by_batch"),
        graph.colocate_with(iterator.op),
    ):
        numbers = tf.data.Dataset.range(slices.inputs[0].shape[0])
        first = tf.TensorShape(batch.get_attr("output_shapes")[0])
        shape = tf.TensorShape([first[0] if first.rank else None])
        numbers = tf.data.experimental.to_variant(numbers)
        for operation in (*reversed(below), batch):
            numbers = _copy(operation, numbers, shape if operation is batch else tf.TensorShape([]))
        batches = _gathered(numbers, shape, slices, batch)
        for operation in reversed(above):
            batches = _copy(operation, batches)
        return tf.raw_ops.MakeIterator(dataset=batches, iterator=iterator)


def _nearest_dataset(
    dataset: tf.Operation, types: tuple[str, ...]
) -> tuple[list[tf.Operation], tf.Operation | None]:
    """Returns the datasets passed on the way to the first one of `types`, and this one (or None)."""
    passed: list[tf.Operation] = []
    while dataset.type not in types:
        sources = [tensor.op for tensor in dataset.inputs if tensor.dtype == tf.variant]
        if len(sources) != 1 or dataset.inputs[0].dtype != tf.variant:
            return passed, None
        passed.append(dataset)
        (dataset,) = sources
    return passed, dataset


def _pays(batch: tf.Operation, slices: tf.Operation) -> bool:
    size = tf.get_static_value(batch.inputs[1])
    arrays = slices.inputs
    return (
        size is not None
        and size >= _SMALLEST_BATCH
        and bool(arrays[0].shape.rank)
        and arrays[0].shape[0] is not None
        and not any(array.dtype in (tf.variant, tf.resource) for array in arrays)
    )


def _is_on_disk(dataset: tf.Operation) -> bool:
    return dataset.type in _CACHES and tf.get_static_value(dataset.inputs[1]) != b""


def _gathered(
    numbers: tf.Tensor, shape: tf.TensorShape, slices: tf.Operation, batch: tf.Operation
) -> tf.Tensor:
    """Returns the dataset of batches of the rows with these numbers."""
    shapes = batch.get_attr("output_shapes")
    arrays = list(slices.inputs)

    def take(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
        taken = [tf.gather(array, rows) for array in arrays]
        for tensor, shape in zip(taken, shapes, strict=True):
            tensor.set_shape(tf.TensorShape(shape))
        return tuple(taken)

    spec = tf.TensorSpec(shape, tf.int64)
    dataset = tf.data.experimental.from_variant(numbers, spec).map(take)
    return tf.data.experimental.to_variant(dataset)


def _copy(dataset: tf.Operation, source: tf.Tensor, shape: tf.TensorShape | None = None) -> tf.Tensor:
    """Returns a copy of a dataset over another source.

    `shape`: shape of the int64 elements of `source`; None if its elements have the same types as before.
    """
    graph_def = tf1.GraphDef()
    graph_def.versions.CopyFrom(dataset.graph.graph_def_versions)
    node = graph_def.node.add()
    node.CopyFrom(dataset.node_def)
    node.attr.pop("_class", None)
    node.ClearField("experimental_type")  # it may name the types of the previous source
    if shape is not None:
        types = "output_types" if "output_types" in node.attr else "Toutput_types"
        node.attr[types].CopyFrom(_list(type=[tf.int64.as_datatype_enum]))
        node.attr["output_shapes"].CopyFrom(_list(shape=[shape.as_proto()]))
    taken = dict(zip(node.input, dataset.inputs, strict=True))
    taken[node.input[0]] = source
    (copied,) = tf.graph_util.import_graph_def(
        graph_def, taken, return_elements=[f"{node.name}:0"], name="dataset"
    )
    return copied


def _list(**values: Any) -> Any:
    return tf1.AttrValue(list=tf1.AttrValue.ListValue(**values))
