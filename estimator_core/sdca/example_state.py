"""The state of SDCA for each example."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

_STATE_SIZE = 4  # dual value, primal loss, dual loss, weight
_EMPTY_KEY = (0, 0)
_DELETED_KEY = (1, 1)
_INITIAL_NUM_BUCKETS = 2**17


class ExampleStates:
    """A sharded table from example ids to four numbers, saved in checkpoints.

    Create it at the root of the name scopes: checkpoints name the shards
    `ShardedMutableHashTable-<i>-of-<n>`.
    """

    def __init__(self, num_shards: int):
        self._tables = [
            tf.lookup.experimental.DenseHashTable(
                key_dtype=tf.int64,
                value_dtype=tf.float32,
                default_value=[0.0] * _STATE_SIZE,
                empty_key=_EMPTY_KEY,
                deleted_key=_DELETED_KEY,
                initial_num_buckets=_INITIAL_NUM_BUCKETS,
                name=f"ShardedMutableHashTable-{shard + 1}-of-{num_shards}",
            )
            for shard in range(num_shards)
        ]

    def lookup(self, keys: tf.Tensor) -> tf.Tensor:
        """Returns the states, float32 `[batch_size, 4]`, 0 for new examples.

        `keys`: int64 `[batch_size, 2]`, fingerprints of the ids.
        """
        positions = self._partition(tf.range(tf.shape(keys)[0]), keys)
        parts = zip(self._tables, self._partition(keys, keys), strict=True)
        return tf.dynamic_stitch(positions, [table.lookup(part) for table, part in parts])

    def insert(self, keys: tf.Tensor, states: tf.Tensor) -> tf.Operation:
        """Returns the op that stores the states."""
        parts = zip(
            self._tables, self._partition(keys, keys), self._partition(states, keys), strict=True
        )
        return tf.group(*(table.insert(key, state) for table, key, state in parts))

    def size(self) -> tf.Tensor:
        """Returns the number of examples, int64 scalar."""
        return tf.add_n([table.size() for table in self._tables])

    def totals(self) -> tf.Tensor:
        """Returns the sums over all examples, float64 `[4]`."""
        states = [table.export()[1] for table in self._tables]
        return tf.add_n([tf.reduce_sum(tf.cast(state, tf.float64), axis=0) for state in states])

    def _partition(self, data: tf.Tensor, keys: tf.Tensor) -> Sequence[tf.Tensor]:
        shard = tf.cast(tf.abs(keys[:, 0]) % len(self._tables), tf.int32)
        return tf.dynamic_partition(data, shard, len(self._tables))
