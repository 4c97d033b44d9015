"""From what an input_fn returns to the tensors that a model_fn receives."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Inputs
from estimator_core.spec.mode_keys import ModeKeys


class IteratorInitializerHook(tf1.train.SessionRunHook):
    """Starts a dataset's iterator in each new session, the recovered ones included."""

    def __init__(self, iterator: Any):
        self._iterator = iterator

    def begin(self) -> None:
        """Takes the initializer while the graph can still grow."""
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the initializer."""
        del coord
        session.run(self._initializer)


def inputs_from(result: Any, mode: str) -> Inputs:
    """Returns the inputs that the `result` of an input_fn stands for.

    Args:
        result: `tf.data.Dataset` of features or of (features, labels), or such tensors themselves.
        mode: One of `ModeKeys`; for prediction the labels are left out.

    Raises:
        ValueError: `result` is neither.
    """
    if isinstance(result, tf.data.Dataset):
        iterator = tf1.data.make_initializable_iterator(result)
        features, labels = features_and_labels(iterator.get_next(), mode)
        return Inputs(features, labels, (IteratorInitializerHook(iterator),))
    if result is None:
        raise ValueError(
            "input_fn returned None; it should return a Dataset or (features, labels)."
        )
    features, labels = features_and_labels(result, mode)
    operations = tf1.get_default_graph().get_operations()
    can_end = tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS) or any(
        operation.type == "IteratorGetNext" for operation in operations
    )
    return Inputs(features, labels, is_endless=not can_end)


def features_and_labels(element: Any, mode: str) -> tuple[Any, Any]:
    """Returns (features, labels) of one element of the input; labels are None when there are none.

    Raises:
        ValueError: The element is a tuple of another length.
    """
    if not isinstance(element, (list, tuple)):
        return element, None
    if mode == ModeKeys.PREDICT:
        return element[0], None
    if len(element) != 2:
        raise ValueError(
            "input_fn should return (features, labels) as a len 2 tuple. "
            f"Received: {len(element)} elements"
        )
    return element[0], element[1]
