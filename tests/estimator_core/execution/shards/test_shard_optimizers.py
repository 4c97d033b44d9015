"""Optimizers in the model of a shard."""

import pytest
import tensorflow as tf

from estimator_core import tpu
from tests.estimator_core.shard_programs import input_fn

tf1 = tf.compat.v1


@pytest.mark.parametrize(
    ("reduction", "weight"),
    [
        # The gradients of the shards are -4 * mean(1, 4) = -10 and -4 * mean(9, 16) = -50.
        (tf1.losses.Reduction.MEAN, 0.125 * 30),
        (tf1.losses.Reduction.SUM, 0.125 * 60),
    ],
)
def test_a_cross_shard_optimizer_takes_the_mean_or_the_sum(make_sharded, reduction, weight):
    losses = []

    class Note(tf1.train.SessionRunHook):
        def before_run(self, run_context):
            graph = run_context.session.graph
            return tf1.train.SessionRunArgs(graph.get_collection(tf1.GraphKeys.LOSSES)[0])

        def after_run(self, run_context, run_values):
            losses.append(run_values.results)

    estimator = make_sharded(params={"reduction": reduction}).train(input_fn, [Note()], steps=1)
    assert estimator.get_variable_value("weight") == weight
    assert losses == [(4 + 16 + 36 + 64) / 4]  # the mean over the shards


def test_optimizers_are_as_they_were_afterwards(make_sharded):
    classes = (tf1.train.Optimizer, tf1.tpu.CrossShardOptimizer)
    before = [dict(vars(owner)) for owner in classes]
    make_sharded().train(input_fn, steps=1)
    assert [dict(vars(owner)) for owner in classes] == before
    assert tf1.tpu.CrossShardOptimizer is tpu.CrossShardOptimizer
