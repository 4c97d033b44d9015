"""Sums over replicas where there is one."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.tpu.user_functions import without_cross_replica_sums
from tests.estimator_core.programs import zeros


def test_a_sum_over_replicas_is_an_identity(graph):
    value = tf.constant([1.0, 2.0])
    with without_cross_replica_sums(graph):
        total = tf1.tpu.cross_replica_sum(value, name="total")
    (gradient,) = tf.gradients(3.0 * total, value)
    assert {operation.type for operation in graph.get_operations()}.isdisjoint({"CrossReplicaSum"})
    with tf1.Session() as session:
        results = session.run([total, gradient])
    tf1.tpu.cross_replica_sum(value)  # afterwards the graph is as any other
    np.testing.assert_array_equal(results, [[1.0, 2.0], [3.0, 3.0]])
    assert [op.type for op in graph.get_operations()].count("CrossReplicaSum") == 1


@pytest.mark.parametrize("kind", ["cond", "function"])
def test_a_sum_over_replicas_within_a_function_is_refused(tmp_path, kind):
    """As when gradients are accumulated, and applied every few steps."""

    def model_fn(features, labels, mode, params):
        loss = tf.square(zeros("weight") - labels[0])
        step = tf1.train.get_global_step()
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
        gradients = optimizer.compute_gradients(loss)
        if kind == "cond":
            train_op = tf.cond(
                tf.equal(step % 2, 0),
                lambda: tf.group(optimizer.apply_gradients(gradients)),
                lambda: tf.group(),
            )
        else:
            gradient = gradients[0][0]
            train_op = tf.function(lambda: tf1.tpu.cross_replica_sum(gradient))()
        with tf.control_dependencies([train_op]):
            train_op = step.assign_add(1).op
        return tpu.TPUEstimatorSpec(est.ModeKeys.TRAIN, loss=loss, train_op=train_op)

    estimator = tpu.TPUEstimator(
        model_fn, config=tpu.RunConfig(model_dir=str(tmp_path)), use_tpu=False, train_batch_size=1
    )
    expected = "can't be made within tf.cond, tf.while_loop or tf.function"
    with pytest.raises(ValueError, match=re.escape(expected)):
        estimator.train(lambda params: tf.data.Dataset.from_tensors(([0.0], [1.0])), steps=1)
