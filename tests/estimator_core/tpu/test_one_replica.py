import tensorflow as tf

from estimator_core.tpu import one_replica

tf1 = tf.compat.v1


def test_the_sum_over_one_replica_is_its_own_value():
    with tf.Graph().as_default() as graph:
        x = tf.constant([1.0, 2.0])
        total = tf1.tpu.cross_replica_sum(x)
        twice = tf1.tpu.cross_replica_sum(10.0 * x)
        result = total + twice * total  # takes one sum two times
        assert [op.type for op in graph.get_operations()].count("CrossReplicaSum") == 2
        one_replica.without_cross_replica_sums(graph)
        assert not [
            op
            for op in graph.get_operations()
            if op.outputs and op.type == "CrossReplicaSum" and op.outputs[0].consumers()
        ]
        with tf1.Session(config=one_replica.session_config(tf1.ConfigProto())) as session:
            # (1, 2) + 10 (1, 4)
            assert session.run(result).tolist() == [11.0, 42.0]


def test_a_graph_without_sums_stays_as_it_is():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0) + 2.0
        before = graph.as_graph_def()
        one_replica.without_cross_replica_sums(graph)
        assert graph.as_graph_def() == before


def test_the_session_config_is_a_copy_with_one_more_setting():
    given = tf1.ConfigProto(intra_op_parallelism_threads=3)
    config = one_replica.session_config(given)
    assert config.intra_op_parallelism_threads == 3
    assert config.graph_options.place_pruned_graph
    assert not given.graph_options.place_pruned_graph
