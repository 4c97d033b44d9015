"""Cross-replica sums of a TPU in a graph with one replica: on this machine."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from estimator_core.execution.shards.cross_replica_sums import replaced_sums


def without_cross_replica_sums(graph: tf.Graph) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which a cross-replica sum added to `graph` is the replica's own value.

    With one replica the sum is the value itself, so an identity replaces it.
    """

    def identity(value: tf.Tensor, groups: tf.Tensor, name: str) -> tf.Operation:
        del groups
        return tf.identity(value, name=name).op

    return replaced_sums(graph, identity, "leave them out when params['use_tpu'] is False")
