"""Functions for a `tf.Graph` that are traced outside of it, as TensorFlow 2 traces functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution


def replicas_meet_in_graph() -> bool:
    """Returns whether what is built now are replicas of `tf.distribute`, which can't leave the graph."""
    execution = current_execution()
    return execution.is_replicated and not execution.copies_operations


def eager_unless_replicated() -> contextlib.AbstractContextManager[Any]:
    """Returns a context outside of the current graph, where Keras behaves as in a program of its own.

    There a function can be traced to be called in the graph. In a graph built by hand, and in functions
    traced within it, `tensor == value` compares identities, as in TensorFlow 1; code written for
    Keras 3 means the values. Replicas that meet in the graph can't leave it.
    """
    if replicas_meet_in_graph():
        return contextlib.nullcontext()
    return tf.__internal__.eager_context.eager_mode()


def call_as_function(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns what a function returns for tensors of the current graph, traced as Keras' `fit` does.

    What it does by side effects happens when any of its outputs is evaluated, in order. With
    replicas, which must meet in the graph itself, it is just called. For shards, which have copies of
    operations, its operations are put into the graph, so that each shard has random numbers of its own.

    Args:
        function: Function of `inputs`; it may use variables of the graph, but make none.
        inputs: Nested structures of tensors and None.
    """
    if replicas_meet_in_graph():
        return function(*inputs)
    return _called(function, inputs, in_pieces=current_execution().copies_operations)


def call_in_one_piece(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns the same as one call, even for shards: for what is done once for all of them.

    Args:
        function: As for `call_as_function`.
        inputs: As for `call_as_function`.
    """
    return _called(function, inputs, in_pieces=False)


def _called(function: Callable[..., Any], inputs: Sequence[Any], in_pieces: bool) -> Any:
    flat = tf.nest.flatten(inputs, expand_composites=True)
    tensors = [tensor for tensor in flat if tensor is not None]
    seed = tf1.get_default_graph().seed
    structure: list[Any] = []

    def from_flat(*traced: Any) -> list[Any]:
        tf1.get_default_graph().seed = seed
        remaining = iter(traced)
        packed = [None if tensor is None else next(remaining) for tensor in flat]
        outputs = function(*tf.nest.pack_sequence_as(inputs, packed, expand_composites=True))
        structure[:] = [outputs]
        leaves = tf.nest.flatten(outputs, expand_composites=True)
        return [leaf for leaf in leaves if leaf is not None]

    specs = [tf.TensorSpec.from_tensor(tensor) for tensor in tensors]
    with tf.__internal__.eager_context.eager_mode():
        concrete = tf.function(from_flat, autograph=False).get_concrete_function(*specs)
    results = iter(_in_pieces(concrete, tensors) if in_pieces else concrete(*tensors))
    leaves = tf.nest.flatten(structure, expand_composites=True)
    returned = [None if leaf is None else next(results) for leaf in leaves]
    return tf.nest.pack_sequence_as(structure, returned, expand_composites=True)[0]


def _in_pieces(concrete: Any, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the outputs of a traced function whose operations are copied into the current graph.

    Each output waits for all side effects: the trace has seen to that.
    """
    values = [*tensors, *concrete.captured_inputs]
    replaced = {inner.name: value for inner, value in zip(concrete.inputs, values, strict=True)}
    arguments = {inner.op.name for inner in concrete.inputs}
    waits = {f"^{name}" for name in arguments}
    graph_def = concrete.graph.as_graph_def()
    operations = tf1.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.name in arguments:
            continue
        inputs = [name for name in node.input if name not in waits]
        del node.input[:]
        node.input.extend(inputs)
        node.attr.pop("_class", None)  # what it names may be an argument
        operations.node.append(node)
    names = [output.name for output in concrete.outputs]
    return list(tf.graph_util.import_graph_def(operations, replaced, names, name="keras"))
