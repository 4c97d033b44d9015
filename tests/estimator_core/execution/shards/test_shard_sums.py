"""Sums over the shards of a TPUEstimator, random numbers of each shard, and optimizers in a shard's model."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core import tpu
from estimator_core.execution.shards.shard_copies import ModelGraph
from tests.estimator_core.programs import Fetching, zeros
from tests.estimator_core.shard_programs import input_fn, model_fn, noting, shared_descent

MEAN, SUM = tf1.losses.Reduction.MEAN, tf1.losses.Reduction.SUM


def seen_by_shards(make_sharded, value, steps=1):
    """Returns the values that 4 shards of 1, 2, 3 and 4 see in each step of training."""
    seen = []

    def noting_model_fn(features, labels, mode, params):
        return noting(model_fn(features, labels, mode, params), value(features["x"]), seen)

    make_sharded(noting_model_fn, num_shards=4).train(input_fn, steps=steps)
    return seen


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(tpu.cross_replica_sum, [[10.0] * 4, [26.0] * 4], id="of any value"),
        pytest.param(
            lambda x: tpu.cross_replica_sum(x, [[0, 2], [1, 3]]), [[4.0, 6.0, 4.0, 6.0]], id="in groups"
        ),
        pytest.param(
            lambda x: tpu.cross_replica_sum(x - tpu.cross_replica_sum(x) / 4), [[0.0] * 4], id="of sums"
        ),
    ],
)
def test_each_shard_sees_the_sum(make_sharded, value, expected):
    assert seen_by_shards(make_sharded, value, steps=len(expected)) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda x: tpu.cross_replica_sum(x, [[0, 1]]), "each of the shards 0 to 3 in one group"),
        (
            lambda x: tf.cond(x[0] > 0, lambda: tpu.cross_replica_sum(x), lambda: tf.zeros([1])),
            "can't be made within",
        ),
    ],
    ids=["groups that are none", "within a function"],
)
def test_sums_that_are_refused(make_sharded, value, message):
    with pytest.raises(ValueError, match=message):
        seen_by_shards(make_sharded, value)


def test_the_gradient_of_a_sum_is_the_sum_of_gradients(make_sharded):
    """The loss of shard k is k * (sum of weight * x_k): the weight's gradient is (1 + 2) * (1 + 2)."""

    def sum_model_fn(features, labels, mode, params):
        x = tf.reduce_sum(features["x"])
        loss = x * tpu.cross_replica_sum(zeros("weight") * x)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, 1.0, SUM))

    estimator = make_sharded(sum_model_fn, train_batch_size=2).train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == -9.0


@pytest.mark.parametrize("seed", [None, 3])
def test_shards_draw_other_random_numbers(make_sharded, seed):
    drawn = seen_by_shards(make_sharded, lambda x: tf1.random_uniform([1], seed=seed), steps=2)
    assert len({number for step in drawn for number in step}) == 8


def test_stateless_random_numbers_are_the_same(make_sharded):
    """As on a TPU, whose cores run one program with one seed."""
    seed = tf1.train.get_global_step
    draw = lambda x: tf.random.stateless_uniform([1], [1, seed()])  # noqa: E731
    drawn = seen_by_shards(make_sharded, draw, steps=2)
    assert [len(set(step)) for step in drawn] == [1, 1]
    assert drawn[0] != drawn[1]


def test_the_functions_of_a_graph_are_read_once(graph, monkeypatch):
    weight, batch = tf.Variable(1.0), tf1.placeholder(tf.float32, [])
    before = len(graph.get_operations())
    for _ in range(3):
        tf.function(lambda x: weight.assign_add(x).read_value())(batch)
    operations = graph.get_operations()[before:]
    model = ModelGraph(operations, [batch], (), updates_once=True)
    read, calls = tf.Graph.as_graph_def, []
    monkeypatch.setattr(tf.Graph, "as_graph_def", lambda self: calls.append(1) or read(self))
    assert model.updates_by_one_shard([weight], (), operations) == [weight.name]
    assert len(calls) == 1


# The gradients of the shards are -4 * mean(1, 4) = -10 and -4 * mean(9, 16) = -50.
@pytest.mark.parametrize(("reduction", "weight"), [(MEAN, 0.125 * 30), (SUM, 0.125 * 60)])
def test_a_cross_shard_optimizer_takes_the_mean_or_the_sum(make_sharded, reduction, weight):
    losses = Fetching(lambda graph: graph.get_collection(tf1.GraphKeys.LOSSES)[0])
    estimator = make_sharded(params={"reduction": reduction}).train(input_fn, [losses], steps=1)
    assert estimator.get_variable_value("weight") == weight
    assert losses.values == [(4 + 16 + 36 + 64) / 4]  # the mean over the shards


def test_optimizers_are_as_they_were_afterwards(make_sharded):
    classes = (tf1.train.Optimizer, tf1.tpu.CrossShardOptimizer)
    before = [dict(vars(owner)) for owner in classes]
    make_sharded().train(input_fn, steps=1)
    assert [dict(vars(owner)) for owner in classes] == before
    assert tf1.tpu.CrossShardOptimizer is tpu.CrossShardOptimizer
