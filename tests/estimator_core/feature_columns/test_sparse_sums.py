"""Sums of weights: TensorFlow's own numbers, without a copy of all weights."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns.linear_model import sparse_sum

BUCKETS, UNITS = 50, 3
# Equal ids in one example and in several; an id below 0, alone and beside others; no id at all.
LISTS = [[3, 3, 7], [], [-1], [49, -1, 3], [0], [7, 0, 3, 3, 12]]
VALUES = np.random.default_rng(0).normal(size=(BUCKETS, UNITS)).astype(np.float32)


def as_sparse(lists):
    indices = [(row, place) for row, ids in enumerate(lists) for place in range(len(ids))]
    return tf.SparseTensor(indices, tf.constant(list(itertools.chain(*lists)), tf.int64), [len(lists), 5])


def run(function, combiner, id_weights):
    """Returns the sums, and the rows and values of their gradient."""
    with tf.Graph().as_default():
        weight = tf1.get_variable("w", initializer=VALUES, use_resource=True)
        ids = as_sparse(LISTS)
        weights = None
        if id_weights:
            weights = tf.SparseTensor(ids.indices, tf.linspace(0.5, 2.0, 13), ids.dense_shape)
        sums = function(weight, ids, weights, combiner)
        (gradient,) = tf1.gradients(tf.reduce_sum(tf.sin(sums)), weight)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            return session.run([sums, gradient.indices, gradient.values])


def of_tensorflow(weight, ids, id_weights, combiner):
    return tf.nn.safe_embedding_lookup_sparse(weight, ids, id_weights, combiner)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("id_weights", [False, True])
def test_values_and_gradients_are_those_of_tensorflow_bit_for_bit(combiner, id_weights):
    expected = run(of_tensorflow, combiner, id_weights)
    for own, other in zip(run(sparse_sum, combiner, id_weights), expected, strict=True):
        np.testing.assert_array_equal(own, other)


def test_the_mean_of_the_ids_that_are_there():
    sums, rows, _ = run(sparse_sum, "mean", id_weights=False)
    np.testing.assert_array_equal(sums[1:3], np.zeros((2, UNITS)))
    np.testing.assert_allclose(sums[3], (VALUES[49] + VALUES[3]) / 2, rtol=1e-6)
    assert sorted(rows) == [0, 3, 7, 12, 49]


def executed(function):
    """Returns the operations that run in a sum, after TensorFlow's rewriting."""
    with tf.Graph().as_default(), tf1.Session() as session:
        weight = tf1.get_variable("w", initializer=VALUES, use_resource=True)
        ids = tf1.sparse_placeholder(tf.int64, [None, None])
        sums, metadata = function(weight, ids, None, "sum"), tf1.RunMetadata()
        session.run(tf1.global_variables_initializer())
        fed = {ids: ([[0, 0], [1, 0]], [3, 4], [2, 1])}
        session.run(sums, fed, tf1.RunOptions(output_partition_graphs=True), metadata)
    return {node.op for graph in metadata.partition_graphs for node in graph.node}


def test_rows_are_looked_up_in_the_variable_and_not_in_a_copy():
    operations = executed(sparse_sum)
    assert "ResourceGather" in operations
    assert "ReadVariableOp" not in operations
    # When this fails, TensorFlow has stopped it, and so can we.
    assert "ReadVariableOp" in executed(of_tensorflow)


def test_weights_in_parts_are_looked_up_by_tensorflow(session):
    with tf1.variable_scope("", partitioner=tf1.fixed_size_partitioner(2), use_resource=True):
        weight = tf1.get_variable("w", [BUCKETS, 1], initializer=tf.ones_initializer())
        sums = sparse_sum(weight, as_sparse(LISTS), None, "sum")
    session.run(tf1.global_variables_initializer())
    np.testing.assert_array_equal(session.run(sums)[:, 0], [3, 0, 0, 2, 1, 5])
