"""Input functions over data in memory; the data are not copied into the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution, is_built_by_an_estimator

_MAX_BATCHES_PER_CALL = 16  # maximum batches that a call of Python takes from the arrays
_MAX_BYTES_PER_CALL = 1 << 20  # and their maximum size


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[..., Any]:
    """Returns an input_fn over NumPy arrays.

    Batches run across the ends of epochs; only the very last one may be smaller. Called within your own
    input_fn, or for your own session, it returns tensors; otherwise, and under a
    distribution strategy, a `tf.data.Dataset`. In your own session, start the input with
    `tf.compat.v1.train.start_queue_runners`.

    Example:
        >>> age, weight = np.arange(4) * 1.0, np.arange(32, 36)
        >>> input_fn = numpy_input_fn({"age": age, "weight": weight}, batch_size=2, shuffle=False)

    Args:
        x: Array, or dict of name to array, `[number_of_examples, ...]`.
        y: Labels, in the same form; None gives only features.
        batch_size: Examples in a batch.
        num_epochs: Passes over the data; None repeats them forever.
        shuffle: Shuffles each pass if true. Must be given.
        queue_capacity: Not used: all data are shuffled, and `tf.data` sizes its own buffers.
        num_threads: Not used.

    Raises:
        TypeError: `x` is neither an array nor a dict.
        ValueError: `shuffle` is not given, `x` is empty, `x` and `y` have a key in common, lengths differ,
            or an array of Python objects holds anything but strings.

    Source: `tf.estimator.inputs.numpy_input_fn`.
    """
    del queue_capacity, num_threads
    if isinstance(x, Mapping) and isinstance(y, Mapping) and x.keys() & y.keys():
        raise ValueError(
            "x and y must not have keys in common: give the labels other names. Received: "
            f"{sorted(x.keys() & y.keys(), key=str)} in both"
        )
    return _input_fn_over(x, y, batch_size, num_epochs, shuffle)


def _input_fn_over(
    x: Any, y: Any, batch_size: int, num_epochs: int | None, shuffle: bool | None
) -> Callable[..., Any]:
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean; it is recommended to set it as "
            f"True for training. Received: shuffle={shuffle!r}"
        )
    if batch_size <= 0:
        raise ValueError(f"batch_size must be above 0. Received: batch_size={batch_size}")
    if not isinstance(x, (Mapping, np.ndarray)):
        raise TypeError(f"x must be a dict or array; use numpy.asarray for a list. Received: {type(x)}")
    if isinstance(x, Mapping) and not x:
        raise ValueError("x cannot be an empty dict. Received: x={}")
    if isinstance(y, Mapping) and not y:
        raise ValueError("y cannot be an empty dict; use y=None instead. Received: y={}")
    elements = _arrays(x, "x") if y is None else (_arrays(x, "x"), _arrays(y, "y"))
    lengths = {len(array) for array in tf.nest.flatten(elements)}
    if len(lengths) != 1:
        raise ValueError(
            "Length of tensors in x and y is mismatched. Received: shapes "
            f"{tf.nest.map_structure(np.shape, elements)}"
        )
    (count,) = lengths

    def input_fn(mode: str | None = None) -> Any:
        dataset = _batches(elements, count, batch_size, num_epochs, shuffle)
        # An Estimator passes the mode; without it, the caller's own input_fn uses the tensors.
        is_estimators = mode is not None or tf.executing_eagerly() or current_execution().is_replicated
        return dataset if is_estimators else _next_batch(dataset)

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[..., Any]:
    """Returns an input_fn over a pandas `DataFrame`; its columns are the features.

    Args:
        x: `DataFrame` of features.
        y: `Series` of labels, or a `DataFrame` whose columns become a dict of labels; None gives
            only features.
        batch_size: Examples in a batch.
        num_epochs: Passes over the data; None repeats them forever.
        shuffle: Shuffles each pass if true. Must be given.
        queue_capacity: Not used, as in `numpy_input_fn`.
        num_threads: Not used, as in `numpy_input_fn`.
        target_column: Name for the labels, which no feature may have.

    Raises:
        TypeError: `x` is not a `DataFrame`, or `target_column` is not a string.
        ValueError: `shuffle` is not given, the indexes of `x` and `y` differ, a feature has the name
            of the labels, or a column of Python objects holds anything but strings.

    Source: `tf.estimator.inputs.pandas_input_fn`.
    """
    del queue_capacity, num_threads
    if not hasattr(x, "columns"):
        raise TypeError(f"x must be a pandas DataFrame. Received: x={type(x)}")
    if not isinstance(target_column, str):
        raise TypeError(f"target_column must be a string. Received: target_column={target_column!r}")
    if y is not None:
        if not np.array_equal(x.index, y.index):
            raise ValueError(
                f"Index for x and y are mismatched. Received: x.index={x.index}, y.index={y.index}"
            )
        if target_column in x.columns:
            raise ValueError(
                f"x has a column {target_column!r} already, the name of the labels: give another "
                f"target_column. Received: columns={list(x.columns)}"
            )
    features = {name: x[name].to_numpy() for name in x.columns}
    labels = y
    if hasattr(y, "columns"):
        labels = {name: y[name].to_numpy() for name in y.columns}
    elif y is not None:
        labels = y.to_numpy()
    # Not `numpy_input_fn`: as in tf.estimator, a DataFrame of labels may share names with the features.
    return _input_fn_over(features, labels, batch_size, num_epochs, shuffle)


def _batches(
    elements: Any, count: int, batch_size: int, num_epochs: int | None, shuffle: bool
) -> tf.data.Dataset:
    """Returns the examples in batches. One call of Python takes several small batches."""
    if not count:
        num_epochs = 0  # repeating nothing would never fill a batch
    if shuffle:
        seeds = tf.data.Dataset.random().batch(2)  # by the graph's seed
        epochs = seeds.take(-1 if num_epochs is None else num_epochs)
        orders = epochs.map(lambda seed: tf.random.experimental.stateless_shuffle(_range(count), seed))
    else:
        orders = tf.data.Dataset.range(1).repeat(num_epochs).map(lambda _: _range(count))
    row_bytes = sum(array[:1].nbytes for array in tf.nest.flatten(elements))
    batches_per_call = max(
        1, min(_MAX_BATCHES_PER_CALL, _MAX_BYTES_PER_CALL // max(row_bytes * batch_size, 1))
    )
    dataset = orders.rebatch(batch_size * batches_per_call).map(lambda index: _take(elements, index))
    if batches_per_call > 1:
        dataset = dataset.rebatch(batch_size)
    return dataset.prefetch(tf.data.AUTOTUNE)


def _range(count: int) -> tf.Tensor:
    return tf.range(count, dtype=tf.int64)


def _next_batch(dataset: tf.data.Dataset) -> Any:
    """Returns the tensors of a batch; each new session starts with the first batch."""
    iterator = tf1.data.make_initializable_iterator(dataset)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    if not is_built_by_an_estimator(tf1.get_default_graph()):
        starter = _IteratorStarter(iterator.initializer)
        tf1.add_to_collection(tf1.GraphKeys.QUEUE_RUNNERS, starter)
    return iterator.get_next()


class _IteratorStarter:
    """Starts the input in the user's session, by `start_queue_runners`, as 2.15's queues are started."""

    def __init__(self, initializer: tf.Operation):
        self.name = initializer.name
        self._initializer = initializer

    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[Any]:
        """Initializes the iterator; no thread has to run."""
        del coord, daemon, start
        sess.run(self._initializer)
        return []


def _arrays(values: Any, what: str) -> Any:
    """Returns arrays of dtypes that TensorFlow has; text is encoded."""
    if isinstance(values, Mapping):
        return {name: _arrays(value, f"{what}[{name!r}]") for name, value in values.items()}
    array = np.asarray(values)
    if array.dtype.kind in "SU" and not isinstance(values, np.ndarray):
        array = np.asarray(values, object)  # NumPy's own strings drop trailing NULs
    if array.dtype == object:
        return _byte_strings(array, what)
    return np.char.encode(array, "utf-8") if array.dtype.kind == "U" else array


def _byte_strings(array: Any, what: str) -> Any:
    """Returns the strings of an object array as bytes, in a new object array."""
    encoded = np.empty(array.shape, object)
    for position, value in enumerate(array.flat):
        if not isinstance(value, (str, bytes)):
            raise ValueError(
                f"{what} is an array of Python objects, and these must be str or bytes: fill in "
                "missing values (fillna) or give the array the type of its values (astype). Received: "
                f"{value!r} of type {type(value).__name__} at position {position}"
            )
        encoded.flat[position] = value.encode() if isinstance(value, str) else value
    return encoded


def _take(elements: Any, index: tf.Tensor) -> Any:
    """Returns the examples at `index` of each array, `[batch_size, ...]`."""
    arrays = tf.nest.flatten(elements)
    dtypes = [tf.as_dtype(array.dtype) for array in arrays]
    taken = tf.numpy_function(lambda i: [array[i] for array in arrays], [index], dtypes, stateful=False)
    for tensor, array in zip(taken, arrays, strict=True):
        tensor.set_shape([None, *array.shape[1:]])
    return tf.nest.pack_sequence_as(elements, taken)
