"""A computation as one function that a TPU core runs: `TPUPartitionedCall` around `tpu.rewrite`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1

_NAME = "tpu_subgraph"


def partitioned_call(computation: Callable[[], Sequence[tf.Tensor]]) -> list[tf.Tensor]:
    """Returns the results of a computation on a TPU, as tensors of the default graph.

    The variables that it makes, and the tensors of the default graph that it reads, stay outside of the
    function and are passed to it. The core that runs it is chosen at each call.
    """
    function_graph = tf.__internal__.FuncGraph(_NAME)
    with function_graph.as_default(), tf.variable_creator_scope(_outside):
        results = tf1.tpu.rewrite(computation, [])
    function_graph.outputs = list(results)
    function = _concrete_function_class().from_func_graph(function_graph, None, {})
    function.add_to_graph(tf1.get_default_graph())
    outputs = tf.raw_ops.TPUPartitionedCall(
        args=function.captured_inputs,
        device_ordinal=tf.raw_ops.TPUOrdinalSelector(),
        Tout=[result.dtype for result in results],
        f=function,
    )
    for output, result in zip(outputs, results, strict=True):
        output.set_shape(result.shape)
    return list(outputs)


def _outside(make: Callable[..., Any], **arguments: Any) -> Any:
    with tf.init_scope():
        return make(**arguments)


@functools.cache
def _concrete_function_class() -> Any:
    """Returns the class. It has no public name; getting it starts TensorFlow's threads: not at import."""
    with tf.init_scope():
        return type(tf.function(lambda: None).get_concrete_function())
