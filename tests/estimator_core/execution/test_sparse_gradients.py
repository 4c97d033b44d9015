"""Gradients whose rows are known to be different."""

import tensorflow as tf

from estimator_core.keras_in_graph.faster_updates import are_different


def test_the_values_of_unique_are_different_and_its_positions_are_not():
    with tf.Graph().as_default():
        values, positions = tf.unique(tf.constant([4, 4, 2]))
        assert are_different(values)
        assert are_different(tf.reshape(tf.identity(values), [-1]))
        assert not are_different(positions)
        assert not are_different(values + 1)
        assert not are_different(tf.constant([1, 1]))


def test_the_gradient_of_a_lookup_by_different_ids():
    with tf.Graph().as_default():
        table = tf.compat.v1.get_variable("table", [9, 2], use_resource=True)
        ids, positions = tf.unique(tf.constant([4, 4, 2]))
        (known,) = tf.gradients(tf.gather(table, ids), [table])
        (unknown,) = tf.gradients(tf.gather(table, positions), [table])
        assert are_different(known.indices)
        assert not are_different(unknown.indices)
