"""Sums across the cores of a TPU, in a graph that has one core: this machine."""

from __future__ import annotations

import tensorflow as tf

from estimator_core import tf1

_CROSS_REPLICA_SUM = "CrossReplicaSum"


def without_cross_replica_sums(graph: tf.Graph) -> None:
    """Makes the sums over replicas in `graph` the one replica's own values.

    `tf.compat.v1.tpu.CrossShardOptimizer` sums gradients by an operation that only a TPU has. With
    one replica the sum is the value itself, so everything that takes the sum takes the value. The
    operations stay behind without a use: run the graph with `session_config`.
    """
    for operation in graph.get_operations():
        if operation.type != _CROSS_REPLICA_SUM:
            continue
        value, total = operation.inputs[0], operation.outputs[0]
        for consumer in total.consumers():
            for index, taken in enumerate(consumer.inputs):
                if taken.name == total.name:
                    # TensorFlow has no public way to change the input of an operation.
                    consumer._update_input(index, value)


def session_config(given: tf1.ConfigProto) -> tf1.ConfigProto:
    """Returns the configuration with which operations that nothing uses need no device."""
    config = tf1.ConfigProto()
    config.CopyFrom(given)
    config.graph_options.place_pruned_graph = True
    return config
