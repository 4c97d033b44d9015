"""Sums over the shards of a TPUEstimator."""

import numpy as np
import pytest
import tensorflow as tf

from estimator_core import tpu
from tests.estimator_core.shard_programs import input_fn, model_fn

tf1 = tf.compat.v1


def summed(value, groups=None):
    """Returns the sums that 4 shards of 1, 2, 3 and 4 see in two steps of training."""
    seen = []

    def summing_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        total = tpu.cross_replica_sum(value(features["x"]), groups)
        note = (lambda total: tf1.py_func(lambda t: seen.append(t.tolist()) or 0, [total], tf.int64), [total])
        return spec._replace(host_call=note)

    return summing_model_fn, seen


def test_sums_of_any_value(make_sharded):
    summing_model_fn, seen = summed(lambda x: x)
    make_sharded(summing_model_fn, num_shards=4).train(input_fn, steps=2)
    assert seen == [[10.0] * 4, [26.0] * 4]


def test_sums_in_groups(make_sharded):
    summing_model_fn, seen = summed(lambda x: x, [[0, 2], [1, 3]])
    make_sharded(summing_model_fn, num_shards=4).train(input_fn, steps=1)
    assert seen == [[4.0, 6.0, 4.0, 6.0]]


def test_sums_of_sums(make_sharded):
    def value(x):
        return x - tpu.cross_replica_sum(x) / 4

    summing_model_fn, seen = summed(value)
    make_sharded(summing_model_fn, num_shards=4).train(input_fn, steps=1)
    np.testing.assert_allclose(seen, [[0.0] * 4])


def test_groups_that_are_none(make_sharded):
    summing_model_fn, _ = summed(lambda x: x, [[0, 1]])
    with pytest.raises(ValueError, match="each of the shards 0 to 3 in one group"):
        make_sharded(summing_model_fn, num_shards=4).train(input_fn, steps=1)


def test_the_gradient_of_a_sum_is_the_sum_of_gradients(make_sharded):
    """The loss of shard k is k * (sum of weight * x_k): the weight's gradient is (1 + 2) * (1 + 2)."""

    def sum_model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        x = tf.reduce_sum(features["x"])
        loss = x * tpu.cross_replica_sum(weight * x)
        optimizer = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0), tf1.losses.Reduction.SUM)
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_sharded(sum_model_fn, train_batch_size=2).train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == -9.0
