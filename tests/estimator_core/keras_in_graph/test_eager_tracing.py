import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.current import building
from estimator_core.execution.sharded import Sharded, Sharding
from estimator_core.execution.shards.shard_inputs import ShardInput
from estimator_core.keras_in_graph import eager_tracing


def test_equality_means_values_only_where_functions_are_traced(graph):
    with eager_tracing.eager_unless_replicated():
        assert tf.executing_eagerly()
    assert not tf.executing_eagerly()


def test_outputs_and_side_effects_of_a_called_function(session):
    total = tf.Variable(10.0)

    def function(pair, absent):
        assert absent is None
        total.assign_add(pair["a"])
        return total * pair["b"]

    inputs = {"a": tf.constant(2.0), "b": tf.constant(3.0)}
    output = eager_tracing.call_as_function(function, inputs, None)
    session.run(tf1.global_variables_initializer())
    # The sum first, and then the product: (10 + 2) * 3, (12 + 2) * 3.
    assert [session.run(output) for _ in range(2)] == [36.0, 42.0]


def test_a_sparse_gradient_stays_sparse_within(session):
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([1, 1]), tf.constant([3, 1]))

    def function(slices):
        assert isinstance(slices, tf.IndexedSlices)
        return tf.convert_to_tensor(slices)

    dense = eager_tracing.call_as_function(function, slices)
    np.testing.assert_allclose(session.run(dense), [[0.0], [3.0], [0.0]])


def test_random_numbers_within_follow_the_seed_of_the_graph():
    def draw(seed):
        with tf.Graph().as_default(), tf1.Session() as session:
            tf1.set_random_seed(seed)
            drawn = eager_tracing.call_as_function(lambda shape: tf.random.uniform([3]), tf.zeros(1))
            return session.run(drawn).tolist()

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_the_operations_of_a_function_are_put_into_the_graph_of_shards(graph, session):
    total = tf.Variable(10.0)

    def function(pair, absent):
        assert absent is None
        total.assign_add(pair["a"])
        ones = tf.where(pair["b"] == 1.0, 1.0, 0.0)
        noise = tf.random.uniform([2], seed=3)
        return {"product": total * pair["b"], "ones": ones, "none": None, "noise": noise}

    with building(graph, Sharded(Sharding(2, ShardInput.SPLIT))):
        inputs = {"a": tf.constant(2.0), "b": tf.constant([3.0, 1.0])}
        outputs = eager_tracing.call_as_function(function, inputs, None)
        inside = {operation.type for operation in graph.get_operations()}
        called = eager_tracing.call_as_one_op(function, inputs, None)
    assert "RandomUniform" in inside  # which gets another seed on each shard
    assert not any("PartitionedCall" in kind for kind in inside)
    assert outputs["none"] is None
    session.run(tf1.global_variables_initializer())
    # The sum first, and then the product: 12 * [3, 1]. Other outputs wait for the sum as well.
    assert session.run(outputs["product"]).tolist() == [36.0, 12.0]
    assert session.run(outputs["ones"]).tolist() == [0.0, 1.0]
    assert session.run(called["product"]).tolist() == [48.0, 16.0]
