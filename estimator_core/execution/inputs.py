"""Turning the result of an input_fn into the batches that a model_fn receives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.rows_by_batch import initializer_by_batch
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook


class Inputs:
    """An iterator in the graph: each call returns the tensors of another batch.

    `mode`: one of `ModeKeys`; for prediction the labels are left out.
    """

    def __init__(
        self, get_next: Callable[[], Any], mode: str, hooks: Sequence[Hook] = (), is_endless: bool = False
    ):
        self._get_next = get_next
        self._mode = mode
        self.hooks = tuple(hooks)
        self.is_endless = is_endless

    @property
    def is_at_end(self) -> bool:
        """True if the OutOfRangeError of a step means that the input has ended."""
        return True

    def next_batch(self) -> tuple[Any, Any]:
        """Returns (features, labels) of the next batch; labels are None when there are none."""
        return features_and_labels(self._get_next(), self._mode)

    def next_batches(self, count: int) -> list[tuple[Any, Any]]:
        """Returns `count` batches, in order; if one is missing at the end of the input, none is used."""
        elements: list[Any] = []
        read: list[Any] = []
        for _ in range(count):
            with tf.control_dependencies(read):
                elements.append(self._get_next())
            read += tf.nest.flatten(elements[-1], expand_composites=True)[:1]
        with tf.control_dependencies(read):
            elements = tf.nest.map_structure(tf.identity, elements, expand_composites=True)
        return [features_and_labels(element, self._mode) for element in elements]


class IteratorInitializerHook(tf1.train.SessionRunHook):
    """Initializes a dataset's iterator in each new session, including recovered ones."""

    def __init__(self, iterator: Any):
        self._iterator = iterator

    def begin(self) -> None:
        """Takes the initializer, or creates a faster one, while the graph can still be changed."""
        self._initializer = initializer_by_batch(self._iterator.initializer)

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        session.run(self._initializer)


def inputs_from(result: Any, mode: str) -> Inputs:
    """Returns the inputs for the `result` of an input_fn.

    `result`: `tf.data.Dataset` of features or of (features, labels), or such tensors themselves, which each
    session call computes again.
    """
    if isinstance(result, tf.data.Dataset):
        return inputs_from_dataset(result, mode)
    if result is None:
        raise ValueError("input_fn returned None; it should return a Dataset or (features, labels).")
    operations = tf1.get_default_graph().get_operations()
    features_and_labels(result, mode)  # raises early, with input_fn in the traceback
    can_end = tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS) or any(
        operation.type == "IteratorGetNext" for operation in operations
    )
    return Inputs(lambda: result, mode, is_endless=not can_end)


def inputs_from_dataset(dataset: tf.data.Dataset, mode: str) -> Inputs:
    """Returns the inputs over a dataset, whose iterator is initialized in each session."""
    features_and_labels(dataset.element_spec, mode)
    iterator = tf1.data.make_initializable_iterator(dataset)
    return Inputs(iterator.get_next, mode, [IteratorInitializerHook(iterator)])


def features_and_labels(element: Any, mode: str) -> tuple[Any, Any]:
    """Returns (features, labels) of one element of the input; labels are None when there are none."""
    if not isinstance(element, (list, tuple)):
        return element, None
    if mode == ModeKeys.PREDICT:
        return element[0], None
    if len(element) != 2:
        raise ValueError(
            f"input_fn should return (features, labels) as a len 2 tuple. Received: {len(element)} elements"
        )
    return element[0], element[1]
