"""Turning the result of an input_fn into the batches of the shards."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.inputs import Inputs, IteratorInitializerHook, features_and_labels, inputs_from
from estimator_core.spec.mode_keys import ModeKeys

IS_PADDING = "is_padding"


class ShardInput(enum.Enum):
    """Ways in which the shards get their batches."""

    SPLIT = "each batch is split into one part for each shard"
    NEXT = "each shard takes the next batch"
    OWN = "input_fn is called for each shard"
    SAME = "all shards take the same batch"


class ShardInputs(Inputs):
    """The batches of all shards.

    `inputs`: single entry for all shards, or with `ShardInput.OWN` one for each.
    `batch_axis`: dimensions along which features and labels are split; None is the first.
    """

    def __init__(
        self,
        inputs: Sequence[Inputs],
        kind: ShardInput,
        batch_axis: Sequence[int] | None,
        has_static_shapes: bool,
        mode: str,
        takes_sparse: bool = False,
    ):
        self._inputs = inputs
        self._kind = kind
        self._batch_axis = batch_axis
        self._has_static_shapes = has_static_shapes
        self.hooks = tuple(hook for shard in inputs for hook in shard.hooks)
        self.is_endless = all(shard.is_endless for shard in inputs)
        self._mode = mode
        self._takes_sparse = takes_sparse

    def next_batch(self) -> tuple[Any, Any]:
        """Returns (features, labels) of the next batch of input_fn, unsplit."""
        return self._inputs[0].next_batch()

    def next_batches(self, count: int) -> list[tuple[Any, Any]]:
        """Returns (features, labels) for each shard; if a batch is missing at the end, none is used."""
        if self._kind is ShardInput.SPLIT:
            batches = _split(self.next_batch(), count, self._batch_axis)
        elif self._kind is ShardInput.SAME:
            batches = [self.next_batch()] * count
        elif self._kind is ShardInput.NEXT:
            batches = self._inputs[0].next_batches(count)
        else:
            batches = _all_or_none([inputs.next_batch for inputs in self._inputs])
        if self._has_static_shapes:
            for tensor in tf.nest.flatten(batches[0]):
                is_dense = isinstance(tensor, tf.Tensor) and tensor.shape.is_fully_defined()
                is_sparse = isinstance(tensor, tf.SparseTensor) and self._takes_sparse
                if not (tensor is None or is_dense or is_sparse):
                    raise _dynamic_shape(tensor)
        return batches


def shard_inputs(
    results: Sequence[Any],
    kind: ShardInput,
    batch_axis: Sequence[int] | None,
    has_static_shapes: bool,
    mode: str,
    takes_sparse: bool = False,
) -> ShardInputs:
    """Returns the inputs for the results of input_fn, which is called once or for each shard."""
    inputs = [inputs_from(result, mode) for result in results]
    if kind is ShardInput.NEXT and not isinstance(results[0], tf.data.Dataset):
        raise TypeError(
            "input_fn must return a tf.data.Dataset when each shard takes the next batch (PER_HOST_V2). "
            f"Received: {results[0]!r}"
        )
    return ShardInputs(inputs, kind, batch_axis, has_static_shapes, mode, takes_sparse)


def padded_inputs(
    dataset: Any, kind: ShardInput, batch_size: int, num_shards: int, takes_sparse: bool = False
) -> PaddedInputs:
    """Returns the inputs of prediction over a dataset, whose batches are all padded to full size."""
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            "For mode PREDICT, input_fn must return a tf.data.Dataset instead of features and labels. "
            f"Received: {dataset!r}"
        )
    features_and_labels(dataset.element_spec, ModeKeys.PREDICT)

    def pad(*element: Any) -> Any:
        features, _ = features_and_labels(element[0] if len(element) == 1 else element, ModeKeys.PREDICT)
        return _padded(features, batch_size)

    batches = dataset.map(pad)
    if kind is ShardInput.NEXT:
        empty = tf.nest.map_structure(_all_zero, batches.element_spec)
        nothing = tf.data.Dataset.from_tensors((empty[0], tf.ones([batch_size], tf.int32)))
        # These fill the last step that has examples; a step of padding alone is not made.
        batches = batches.concatenate(nothing.repeat(num_shards - 1))
    iterator = tf1.data.make_initializable_iterator(batches)
    inputs = Inputs(iterator.get_next, ModeKeys.EVAL, [IteratorInitializerHook(iterator)])
    return PaddedInputs([inputs], kind, None, True, ModeKeys.PREDICT, takes_sparse)


class PaddedInputs(ShardInputs):
    """Batches padded to full size, with a mask of the added examples."""

    # Mask for each shard, int32 `[batch_size]`: 1 for an example that was added.
    is_padding: list[tf.Tensor]

    def next_batches(self, count: int) -> list[tuple[Any, Any]]:
        """Returns (features, mask) for each shard."""
        batches = super().next_batches(count)
        self.is_padding = [mask for _, mask in batches]
        return batches


class FeaturesWithPadding(dict[str, Any]):
    """Features by name; "is_padding" can be looked up, but is not among the items."""

    def __init__(self, features: Any, is_padding: Any = None):
        super().__init__(features)
        self._is_padding = is_padding

    def __missing__(self, name: str) -> Any:
        if name != IS_PADDING or self._is_padding is None:
            raise KeyError(name)
        return self._is_padding


def with_padding(features: Any, mask: tf.Tensor) -> Any:
    """Returns the features; in a dict, "is_padding" can be looked up."""
    return FeaturesWithPadding(features, mask) if isinstance(features, dict) else features


def _padded(features: Any, batch_size: int) -> tuple[Any, tf.Tensor]:
    """Returns the features padded with zeros to the batch size, and the mask of added examples."""
    first = tf.nest.flatten(features)[0]
    is_sparse = isinstance(first, tf.SparseTensor)
    size = tf.cast(first.dense_shape[0], tf.int32) if is_sparse else tf.shape(first)[0]
    message = (
        f"The batches that input_fn gives for prediction must not be above the {batch_size} examples of "
        "params['batch_size']."
    )
    with tf.control_dependencies([tf.debugging.assert_less_equal(size, batch_size, message)]):
        missing = batch_size - size

    def pad(tensor: Any) -> Any:
        if isinstance(tensor, tf.SparseTensor):
            shape = tf.concat([[tf.cast(batch_size, tf.int64)], tensor.dense_shape[1:]], axis=0)
            return tf.SparseTensor(tensor.indices, tensor.values, shape)
        added = tf.zeros(tf.concat([[missing], tf.shape(tensor)[1:]], axis=0), tensor.dtype)
        full = tf.concat([tensor, added], axis=0)
        full.set_shape([batch_size, *tensor.shape.as_list()[1:]])
        return full

    mask = tf.concat([tf.zeros([size], tf.int32), tf.ones([missing], tf.int32)], axis=0)
    return tf.nest.map_structure(pad, features), tf.ensure_shape(mask, [batch_size])


def _all_zero(spec: Any) -> Any:
    if isinstance(spec, tf.SparseTensorSpec) and spec.shape.rank is not None:
        shape = [size or 1 for size in spec.shape.as_list()]
        indices = tf.zeros([0, len(shape)], tf.int64)
        return tf.SparseTensor(indices, tf.zeros([0], spec.dtype), shape)
    if not spec.shape.is_fully_defined():
        raise _dynamic_shape(spec)
    return tf.zeros(spec.shape, spec.dtype)


def _split(batch: tuple[Any, Any], count: int, batch_axis: Sequence[int] | None) -> list[tuple[Any, Any]]:
    tensors = tf.nest.flatten(batch)
    present = [tensor for tensor in tensors if tensor is not None]
    axes = list(batch_axis) if batch_axis is not None else [0] * len(present)
    if len(axes) != len(present):
        raise ValueError(
            "batch_axis must have an entry for each tensor of features and labels. Received: "
            f"batch_axis={tuple(axes)}, {len(present)} tensors"
        )
    parts = [_parts(tensor, axis, count) for tensor, axis in zip(present, axes, strict=True)]
    batches = []
    for shard in range(count):
        of_shard = iter(parts)
        packed = [None if tensor is None else next(of_shard)[shard] for tensor in tensors]
        batches.append(tf.nest.pack_sequence_as(batch, packed))
    return batches


def _parts(tensor: Any, axis: int, count: int) -> list[Any]:
    if isinstance(tensor, tf.SparseTensor):
        return tf.sparse.split(tensor, count, axis)
    size = tensor.shape[axis] if isinstance(tensor, tf.Tensor) and tensor.shape.rank else None
    if size is None:
        raise _dynamic_shape(tensor)
    if size % count:
        raise ValueError(
            f"A batch is split into one part for each shard, so that dimension {axis} must be divisible "
            f"by the number of shards. Received: shape {tensor.shape}, {count} shards"
        )
    return tf.split(tensor, count, axis)


def _all_or_none(next_batch: Sequence[Callable[[], tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
    """Returns one batch of each function, in order; if one has ended, no batch is used."""
    batches: list[Any] = []
    read: list[Any] = []
    for function in next_batch:
        with tf.control_dependencies(read):
            batches.append(function())
        read += [t for t in tf.nest.flatten(batches[-1]) if t is not None][:1]
    with tf.control_dependencies(read):
        return tf.nest.map_structure(lambda t: None if t is None else tf.identity(t), batches)


def _dynamic_shape(tensor: Any) -> ValueError:
    return ValueError(
        "input_fn must return tensors of static shape, as a TPU needs them: let the dataset "
        f"batch(params['batch_size'], drop_remainder=True). Received: {tensor!r}"
    )
