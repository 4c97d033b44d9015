"""Functions for a `tf.Graph` that are traced outside of it, as TensorFlow 2 traces functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution


def eager_unless_replicated() -> contextlib.AbstractContextManager[Any]:
    """Returns a context outside of the current graph, where Keras behaves as in a program of its own.

    There a function can be traced to be called in the graph. In a graph built by hand, and in functions
    traced within it, `tensor == value` compares identities, as in TensorFlow 1; code written for
    Keras 3 means the values. Replicas that meet in the graph can't leave it.
    """
    if current_execution().is_replicated:
        return contextlib.nullcontext()
    return tf.__internal__.eager_context.eager_mode()


def call_as_function(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns what a function returns for tensors of the current graph, traced as Keras' `fit` does.

    What it does by side effects happens when any of its outputs is evaluated, in order. With
    replicas, which must meet in the graph itself, it is just called.

    Args:
        function: Function of `inputs`; it may use variables of the graph, but make none.
        inputs: Nested structures of tensors and None.
    """
    if current_execution().is_replicated:
        return function(*inputs)
    flat = tf.nest.flatten(inputs, expand_composites=True)
    tensors = [tensor for tensor in flat if tensor is not None]
    seed = tf1.get_default_graph().seed

    def from_flat(*traced: Any) -> Any:
        tf1.get_default_graph().seed = seed
        remaining = iter(traced)
        packed = [None if tensor is None else next(remaining) for tensor in flat]
        return function(*tf.nest.pack_sequence_as(inputs, packed, expand_composites=True))

    specs = [tf.TensorSpec.from_tensor(tensor) for tensor in tensors]
    with eager_unless_replicated():
        concrete = tf.function(from_flat, autograph=False).get_concrete_function(*specs)
    return concrete(*tensors)
