"""The one gateway to `tf.compat.v1`: every graph-mode name that this package uses, and no other.

A lint rule forbids `tf.compat.v1` in all other files: this list is all that a future TensorFlow has to
keep, or that we have to replace.
"""

from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import AUTO_REUSE as AUTO_REUSE
from tensorflow.compat.v1 import AttrValue as AttrValue
from tensorflow.compat.v1 import ConfigProto as ConfigProto
from tensorflow.compat.v1 import Event as Event
from tensorflow.compat.v1 import GraphDef as GraphDef
from tensorflow.compat.v1 import GraphKeys as GraphKeys
from tensorflow.compat.v1 import GraphOptions as GraphOptions
from tensorflow.compat.v1 import NodeDef as NodeDef
from tensorflow.compat.v1 import RunOptions as RunOptions
from tensorflow.compat.v1 import Session as Session
from tensorflow.compat.v1 import Summary as Summary
from tensorflow.compat.v1 import SummaryMetadata as SummaryMetadata
from tensorflow.compat.v1 import Variable as Variable
from tensorflow.compat.v1 import VariableScope as VariableScope
from tensorflow.compat.v1 import add_to_collection as add_to_collection
from tensorflow.compat.v1 import control_flow_v2_enabled as control_flow_v2_enabled
from tensorflow.compat.v1 import data as data
from tensorflow.compat.v1 import device as device
from tensorflow.compat.v1 import distribute as distribute
from tensorflow.compat.v1 import executing_eagerly_outside_functions as executing_eagerly_outside_functions
from tensorflow.compat.v1 import get_collection as get_collection
from tensorflow.compat.v1 import get_collection_ref as get_collection_ref
from tensorflow.compat.v1 import get_default_graph as get_default_graph
from tensorflow.compat.v1 import get_variable as get_variable
from tensorflow.compat.v1 import get_variable_scope as get_variable_scope
from tensorflow.compat.v1 import global_variables as global_variables
from tensorflow.compat.v1 import graph_util as graph_util
from tensorflow.compat.v1 import initializers as initializers
from tensorflow.compat.v1 import local_variables as local_variables
from tensorflow.compat.v1 import metrics as metrics
from tensorflow.compat.v1 import min_max_variable_partitioner as min_max_variable_partitioner
from tensorflow.compat.v1 import placeholder as placeholder
from tensorflow.compat.v1 import placeholder_with_default as placeholder_with_default
from tensorflow.compat.v1 import saved_model as saved_model
from tensorflow.compat.v1 import scatter_update as scatter_update
from tensorflow.compat.v1 import set_random_seed as set_random_seed
from tensorflow.compat.v1 import summary as summary
from tensorflow.compat.v1 import tpu as tpu
from tensorflow.compat.v1 import train as train
from tensorflow.compat.v1 import trainable_variables as trainable_variables
from tensorflow.compat.v1 import variable_scope as variable_scope
from tensorflow.core.protobuf import rewriter_config_pb2 as rewriter_config_pb2
from tensorflow.python.client.session import SessionInterface as SessionInterface  # has no public name
from tensorflow.python.ops import lookup_ops as lookup_ops  # tables of vocabularies have no public names


def tpu_context() -> Any:
    """Returns the object whose `number_of_shards` is the number of TPU cores that a graph is for.

    `tpu.CrossShardOptimizer` reads it. TensorFlow has no public name for it.
    """
    return _find_tpu_context()


_find_tpu_context = tpu.CrossShardOptimizer.compute_gradients.__globals__["tpu_function"].get_tpu_context


def define_function(function_def: Any) -> None:
    """Registers a function of a graph with this process. TensorFlow has no public name for it."""
    _find_eager_context().add_function_def(function_def)


_find_eager_context = tf.__internal__.eager_context.get_executor.__globals__["context"]


def without_warning(function: Any) -> Any:
    """Returns a deprecated function without its warning, which a user of ours can do nothing about."""
    return getattr(function, "__wrapped__", function)
