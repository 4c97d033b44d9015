"""The Execution that the current graph is built for."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync

_execution_of: weakref.WeakKeyDictionary[tf.Graph, Execution] = weakref.WeakKeyDictionary()
_SINGLE_DEVICE = SingleDevice()


@contextlib.contextmanager
def building(graph: tf.Graph, execution: Execution) -> Iterator[None]:
    """Opens a context in which `graph`, the default graph, is built for an Execution, within its scope."""
    _execution_of[graph] = execution
    with execution.scope():
        yield


def current_execution() -> Execution:
    """Returns the Execution that the default graph is built for.

    Functions and branches within a graph have the same Execution. For a graph that no Estimator builds, and
    for eager code, it is the Execution of the user's `tf.distribute` scope, or else a `SingleDevice`.
    """
    graph = tf1.get_default_graph()
    while graph is not None:
        if graph in _execution_of:
            return _execution_of[graph]
        graph = getattr(graph, "outer_graph", None)
    if tf.distribute.has_strategy():
        return ReplicasInSync(tf.distribute.get_strategy())
    return _SINGLE_DEVICE


def is_built_by_an_estimator(graph: tf.Graph) -> bool:
    """Returns whether an Estimator builds `graph`, or has built it."""
    return graph in _execution_of
