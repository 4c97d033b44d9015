"""The one gateway to `tf.compat.v1`: every graph-mode name that this package uses, and no other.

A lint rule forbids `tf.compat.v1` in all other files: this list is all that a future TensorFlow has to
keep, or that we have to replace.
"""

from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import (
    AUTO_REUSE,
    AttrValue,
    ConfigProto,
    Event,
    GraphDef,
    GraphKeys,
    GraphOptions,
    NodeDef,
    RunOptions,
    Session,
    Summary,
    SummaryMetadata,
    Variable,
    VariableScope,
    add_to_collection,
    control_flow_v2_enabled,
    data,
    device,
    distribute,
    executing_eagerly_outside_functions,
    get_collection,
    get_collection_ref,
    get_default_graph,
    get_variable,
    get_variable_scope,
    global_variables,
    graph_util,
    initializers,
    local_variables,
    metrics,
    min_max_variable_partitioner,
    placeholder,
    placeholder_with_default,
    saved_model,
    scatter_update,
    set_random_seed,
    summary,
    tpu,
    train,
    trainable_variables,
    variable_scope,
)
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.client.session import SessionInterface  # has no public name
from tensorflow.python.ops import lookup_ops  # tables of vocabularies have no public names

__all__ = [
    "AUTO_REUSE",
    "AttrValue",
    "ConfigProto",
    "Event",
    "GraphDef",
    "GraphKeys",
    "GraphOptions",
    "NodeDef",
    "RunOptions",
    "Session",
    "SessionInterface",
    "Summary",
    "SummaryMetadata",
    "Variable",
    "VariableScope",
    "add_to_collection",
    "control_flow_v2_enabled",
    "data",
    "device",
    "distribute",
    "executing_eagerly_outside_functions",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "get_variable",
    "get_variable_scope",
    "global_variables",
    "graph_util",
    "initializers",
    "local_variables",
    "lookup_ops",
    "metrics",
    "min_max_variable_partitioner",
    "placeholder",
    "placeholder_with_default",
    "rewriter_config_pb2",
    "saved_model",
    "scatter_update",
    "set_random_seed",
    "summary",
    "tpu",
    "tpu_context",
    "train",
    "trainable_variables",
    "variable_scope",
    "without_warning",
]


def tpu_context() -> Any:
    """Returns the object whose `number_of_shards` is the number of TPU cores that a graph is for.

    `tpu.CrossShardOptimizer` reads it. TensorFlow has no public name for it.
    """
    return _find_tpu_context()


_find_tpu_context = tpu.CrossShardOptimizer.compute_gradients.__globals__[
    "tpu_function"
].get_tpu_context


def define_function(function_def: Any) -> None:
    """Registers a function of a graph with this process. TensorFlow has no public name for it."""
    _find_eager_context().add_function_def(function_def)


_find_eager_context = tf.__internal__.eager_context.get_executor.__globals__["context"]


def without_warning(function: Any) -> Any:
    """Returns a deprecated function without its warning, which a user of ours can do nothing about."""
    return getattr(function, "__wrapped__", function)
