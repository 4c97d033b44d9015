"""Functions for a `tf.Graph` that are traced outside of it, as by TensorFlow 2."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution


def replicas_synchronize_in_graph() -> bool:
    """Returns whether replicas of `tf.distribute`, which can't leave the graph, are being built."""
    execution = current_execution()
    return execution.is_replicated and not execution.copies_operations


def eager_unless_replicated() -> contextlib.AbstractContextManager[Any]:
    """Returns a context outside of the current graph, where Keras behaves as in eager programs.

    A function traced there can be called in the graph. In a graph built by hand, and in functions
    traced within it, `tensor == value` compares identities, as in TensorFlow 1; code written for
    Keras 3 compares values. Replicas synchronize within the graph, so they can't leave it.
    """
    if replicas_synchronize_in_graph():
        return contextlib.nullcontext()
    return tf.__internal__.eager_context.eager_mode()


def call_as_function(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns the result of a function of tensors of the current graph, traced as by Keras' `fit`.

    The function's side effects run, in order, when any of its outputs is evaluated. Replicas of
    `tf.distribute` synchronize within the graph, so for them it is simply called. Shards are made from
    copies of operations, so its operations are imported into the graph: each shard has its own random
    numbers.

    `function`: function of `inputs`; it may use variables of the graph, but must not make any.
    """
    if replicas_synchronize_in_graph():
        return function(*inputs)
    return _called(function, inputs, copies_operations=current_execution().copies_operations)


def call_as_one_op(function: Callable[..., Any], *inputs: Any) -> Any:
    """Returns the result like `call_as_function`, but as one call even for shards, which share it."""
    return _called(function, inputs, copies_operations=False)


def _called(function: Callable[..., Any], inputs: Sequence[Any], copies_operations: bool) -> Any:
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
    results = iter(_copied_operations(concrete, tensors) if copies_operations else concrete(*tensors))
    leaves = tf.nest.flatten(structure, expand_composites=True)
    returned = [None if leaf is None else next(results) for leaf in leaves]
    return tf.nest.pack_sequence_as(structure, returned, expand_composites=True)[0]


def _copied_operations(concrete: Any, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the outputs of a traced function, whose operations are copied into the current graph.

    The trace lets each output wait for all side effects.
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
        node.attr.pop("_class", None)  # it may refer to an argument
        operations.node.append(node)
    names = [output.name for output in concrete.outputs]
    return list(tf.graph_util.import_graph_def(operations, replaced, names, name="keras"))
