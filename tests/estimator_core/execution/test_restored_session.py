"""Sessions with the values of a checkpoint, made without a Scaffold where that makes no difference."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.restored_session import KeptSession, restored_session

VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def checkpoint(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("w", initializer=VALUE)
        tf1.get_variable("word", initializer=tf.constant(["a", "b"]))
        session.run(tf1.global_variables_initializer())
        return tf1.train.Saver().save(session, str(tmp_path / "model"), write_meta_graph=False)


def test_variables_local_variables_and_tables_are_there(checkpoint, graph):
    w = tf1.get_variable("w", [2, 3])
    word = tf1.get_variable("word", [2], tf.string, initializer=tf1.zeros_initializer())
    local = tf1.get_local_variable("local", initializer=w.read_value() * 2)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["b"], [7]), -1)
    looked_up = table.lookup(word)
    before = len(graph.get_operations())
    with restored_session(tf1.train.Scaffold(), checkpoint, None) as session:
        assert len(graph.get_operations()) == before
        assert graph.finalized
        np.testing.assert_array_equal(session.run(w), VALUE)
        np.testing.assert_array_equal(session.run(local), 2 * VALUE)
        assert session.run(looked_up).tolist() == [-1, 7]


def test_a_kept_session_takes_the_values_of_a_later_checkpoint(checkpoint, graph, tmp_path):
    w = tf1.get_variable("w", [2, 3])
    local = tf1.get_local_variable("local", initializer=w.read_value() * 2)
    count_up = local.assign_add(tf.ones([2, 3]))
    with tf.Graph().as_default(), tf1.Session() as other:
        tf1.get_variable("w", initializer=VALUE + 5)
        other.run(tf1.global_variables_initializer())
        later = tf1.train.Saver().save(other, str(tmp_path / "later"), write_meta_graph=False)
    kept = KeptSession()
    session = restored_session(tf1.train.Scaffold(), checkpoint, None, kept)
    session.run(count_up)
    session.close()  # as a MonitoredSession does
    assert restored_session(tf1.train.Scaffold(), later, None, kept) is session
    np.testing.assert_array_equal(session.run(w), VALUE + 5)
    np.testing.assert_array_equal(session.run(local), 2 * (VALUE + 5))


def test_a_session_with_queues_is_not_kept(checkpoint, graph):
    tf1.get_variable("w", [2, 3])
    queue = tf.queue.FIFOQueue(1, tf.int32)
    tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [queue.enqueue(1)]))
    kept = KeptSession()
    with restored_session(tf1.train.Scaffold(), checkpoint, None, kept):
        assert kept.session is None


def _variable(**options):
    return lambda: tf1.get_variable(**{"name": "w", "shape": [2, 3], **options})


def _with_initial_value_of_two():
    value = tf.constant(VALUE)
    for name in ("w", "other"):
        tf1.Variable(value, name=name)


@pytest.mark.parametrize(
    "build",
    [
        _variable(name="not_in_the_checkpoint"),
        _variable(dtype=tf.float64),
        _variable(shape=[3, 2]),
        _variable(use_resource=False),
        _variable(partitioner=tf1.fixed_size_partitioner(2)),
        _with_initial_value_of_two,
        lambda: tf1.add_to_collection(tf1.GraphKeys.SAVERS, "a saver"),
        lambda: tf1.add_to_collection(tf1.GraphKeys.LOCAL_INIT_OP, tf.no_op()),
    ],
)
def test_what_takes_a_saver_or_more_gets_none(build, checkpoint, graph):
    build()
    assert restored_session(tf1.train.Scaffold(), checkpoint, None) is None
    assert not graph.finalized


class OwnScaffold(tf1.train.Scaffold):
    pass


@pytest.mark.parametrize("name", ["init_op", "local_init_op", "init_fn", "saver", "ready_op", None])
def test_a_scaffold_of_the_users_is_not_passed_over(name, checkpoint, graph):
    made = {"init_fn": lambda *_: None, "saver": tf1.train.Saver([tf1.get_variable("w", [2, 3])])}
    scaffold = tf1.train.Scaffold(**{name: made.get(name, tf.constant([]))}) if name else OwnScaffold()
    assert restored_session(scaffold, checkpoint, None) is None
