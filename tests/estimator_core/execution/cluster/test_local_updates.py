"""Telling variables that a task changes by its own batch from those that an optimizer changes."""

import pytest
import tensorflow as tf

from estimator_core.execution.cluster.collectives import Peers
from estimator_core.execution.cluster.inputs_in_step import changed_by_batches
from estimator_core.execution.cluster.server import Task

tf1 = tf.compat.v1


@pytest.fixture
def variables():
    with tf.Graph().as_default():
        names = ("average", "weight", "counter", "examples", "untouched")
        yield {
            name: tf1.get_variable(
                name, [], dtype=tf.int32 if name == "examples" else tf.float32, use_resource=True
            )
            for name in names
        }


def test_only_the_average_of_batches_is_local(variables):
    peers = Peers([Task("worker", i, f"host{i}:1") for i in range(2)], 0)
    batch = tf1.placeholder(tf.float32, [None])
    mean = tf.reduce_mean(batch)
    variables["average"].assign(0.9 * variables["average"] + 0.1 * mean)
    variables["weight"].assign_sub(peers.sum(mean * variables["weight"], 9))
    variables["counter"].assign_add(1.0)
    variables["examples"].assign_add(tf.size(batch))
    found = changed_by_batches(variables.values(), lambda variable: (variable,), [batch.op])
    assert [variable.name for variable in found] == ["average:0"]


def test_without_batches_nothing_is(variables):
    assert changed_by_batches(variables.values(), lambda variable: (variable,), []) == []
