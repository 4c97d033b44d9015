"""One training step of SDCA."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from estimator_core import tf1
from estimator_core.sdca.examples import Examples
from estimator_core.sdca.linear_sdca import LinearSDCA

_STATE_SIZE = 4  # dual value, primal loss, dual loss, weight
_EMPTY_KEY = (0, 0)
_DELETED_KEY = (1, 1)
_INITIAL_NUM_BUCKETS = 2**17
_PRIMAL_LOSS, _DUAL_LOSS, _WEIGHT = 1, 2, 3  # indices in the state of an example


def minimize(
    sdca: LinearSDCA,
    loss_type: str,
    examples: Examples,
    states: ExampleStates,
    loss: tf.Tensor,
    summary_scope: str | None = None,
) -> tf.Operation:
    """Returns the op of one training step; it also increments the global step.

    The ascent works on its own variables, `<variable>_unshrunk` below the current variable scope;
    L1 regularization computes the variables of the model from them.

    `summary_scope`: prefix of the tags of summaries; None means none.
    """
    variables = [feature.weights for feature in examples.sparse]
    variables += [feature.weights for feature in examples.dense]
    unshrunk = {variable.ref(): _unshrunk(variable) for variable in variables}
    sparse_unshrunk = [unshrunk[feature.weights.ref()] for feature in examples.sparse]
    dense_unshrunk = [unshrunk[feature.weights.ref()] for feature in examples.dense]

    keys = tf.raw_ops.SdcaFprint(input=examples.ids)
    categories = [tf.unique(feature.category)[0] for feature in examples.sparse]
    step = tf.raw_ops.SdcaOptimizerV2(
        sparse_example_indices=[feature.example_index for feature in examples.sparse],
        sparse_feature_indices=[feature.category for feature in examples.sparse],
        sparse_feature_values=[feature.value for feature in examples.sparse],
        dense_features=[feature.values for feature in examples.dense],
        example_weights=examples.example_weights,
        example_labels=examples.labels,
        sparse_indices=categories,
        sparse_weights=[
            tf.gather(weights, category)
            for weights, category in zip(sparse_unshrunk, categories, strict=True)
        ],
        dense_weights=[tf.convert_to_tensor(weights) for weights in dense_unshrunk],
        example_state_data=states.lookup(keys),
        loss_type=loss_type,
        l1=sdca.symmetric_l1_regularization,
        l2=sdca.symmetric_l2_regularization,
        num_loss_partitions=sdca.num_loss_partitions,
        num_inner_iterations=1,
        adaptive=sdca.adaptive,
    )
    # Read everything, including the loss, before the first write.
    with tf.control_dependencies([loss, *step.out_delta_sparse_weights, *step.out_delta_dense_weights]):
        updates = [states.insert(keys, step.out_example_state_data)]
        for weights, category, delta in zip(
            sparse_unshrunk, categories, step.out_delta_sparse_weights, strict=True
        ):
            updates.append(weights.scatter_add(tf.IndexedSlices(delta, category)))
        for weights, delta in zip(dense_unshrunk, step.out_delta_dense_weights, strict=True):
            updates.append(weights.assign_add(delta, read_value=False))
    threshold = sdca.symmetric_l1_regularization / sdca.symmetric_l2_regularization
    with tf.control_dependencies(updates):
        shrunk = []
        for variable in variables:
            value = tf.convert_to_tensor(unshrunk[variable.ref()])
            if threshold:
                value = tf.sign(value) * tf.maximum(0.0, tf.abs(value) - threshold)
            shrunk.append(variable.assign(value, read_value=False))
    with tf.control_dependencies(shrunk):
        _write_summaries(sdca, variables, states, summary_scope)
        return tf1.train.get_or_create_global_step().assign_add(1, read_value=False)


def _unshrunk(variable: tf.Variable) -> tf.Variable:
    scope = tf1.VariableScope(reuse=False, name=tf1.get_variable_scope().name)  # no partitioner
    beside = tf1.get_default_graph().colocate_with(variable.op)  # on the same parameter server
    with tf1.variable_scope(scope, auxiliary_name_scope=False), beside:
        return tf1.get_variable(
            f"{variable.op.name}_unshrunk",
            variable.shape,
            variable.dtype,
            tf1.initializers.zeros(),
            trainable=False,
            use_resource=True,
        )


def _write_summaries(
    sdca: LinearSDCA, variables: list[tf.Variable], states: ExampleStates, scope: str | None
) -> None:
    """Writes the number of examples seen, and their approximate distance from the optimum."""
    values = [tf.cast(tf.convert_to_tensor(variable), tf.float64) for variable in variables]
    l1_loss = tf.add_n([tf.reduce_sum(tf.abs(value)) for value in values])
    l2_loss = tf.add_n([tf.reduce_sum(tf.square(value)) for value in values]) / 2.0
    totals = states.totals()
    gap = (
        totals[_PRIMAL_LOSS]
        + totals[_DUAL_LOSS]
        + sdca.symmetric_l1_regularization * l1_loss
        + 2.0 * sdca.symmetric_l2_regularization * l2_loss
    ) / totals[_WEIGHT]
    # The tags begin with the name scope; a scope that ends in a slash is absolute.
    with tf1.get_default_graph().name_scope(f"{scope}/" if scope else None):
        tf1.summary.scalar("approximate_duality_gap", gap)
        tf1.summary.scalar("examples_seen", states.size())


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
        parts = zip(self._tables, self._partition(keys, keys), self._partition(states, keys), strict=True)
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
