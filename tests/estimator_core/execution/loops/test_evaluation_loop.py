"""Batches that are evaluated without hooks, in a loop of the graph or one by one."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.evaluation_loop import RepeatedUpdate


def built(session, in_a_loop, batches=20, change=lambda batch: batch, beside=lambda: ()):
    """An update that adds up the values of the input: 0, 1, 2, ..., and further operations."""
    iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(batches))
    total = tf1.get_variable("total", initializer=tf.constant(0, tf.int64))
    update = total.assign_add(change(iterator.get_next()), read_value=False)
    repeated = RepeatedUpdate(tf.group(update, *beside()))
    if in_a_loop:
        repeated.add_loop()
    session.run([tf1.global_variables_initializer(), iterator.initializer])
    return repeated, total


@pytest.fixture(params=[True, False], ids=["in a loop", "one by one"])
def in_a_loop(request):
    return request.param


def test_it_adds_so_many_batches(session, in_a_loop):
    repeated, total = built(session, in_a_loop)
    for batches, expected in ((4, 6), (1, 10), (7, 66)):
        repeated(session, batches)
        assert repeated.batches_made == batches
        assert session.run(total) == expected


def test_the_end_of_the_input_keeps_the_batches_before_it(session, in_a_loop):
    repeated, total = built(session, in_a_loop, batches=6)
    repeated(session, 2)
    for made in (4, 0):
        with pytest.raises(tf.errors.OutOfRangeError):
            repeated(session, 9)
        assert repeated.batches_made == made
        assert session.run(total) == 15


def test_what_needs_no_batch_is_done_once_more_at_the_end(session, in_a_loop):
    """As in tf.estimator 2.15, where an update that adds 1 counts the end of the input as well."""
    count = tf1.get_variable("updates", initializer=0)
    beside = lambda: [count.assign_add(1, read_value=False)]  # noqa: E731
    repeated, total = built(session, in_a_loop, batches=6, beside=beside)
    with pytest.raises(tf.errors.OutOfRangeError):
        repeated(session, 9)
    assert repeated.batches_made == 6
    assert session.run([total, count]) == [15, 7]


def test_an_error_keeps_the_batches_before_it(session, in_a_loop):
    def checked(batch):
        with tf.control_dependencies([tf1.assert_less(batch, tf.constant(3, tf.int64))]):
            return tf.identity(batch)

    repeated, total = built(session, in_a_loop, change=checked)
    with pytest.raises(tf.errors.InvalidArgumentError):
        repeated(session, 9)
    assert repeated.batches_made == 3
    assert session.run(total) == 3


def test_a_graph_is_evaluated_again_in_another_session(in_a_loop, graph):
    with tf1.Session() as first:
        repeated, total = built(first, in_a_loop)
        repeated(first, 3)
    before = len(tf1.get_default_graph().get_operations())
    if in_a_loop:
        repeated.add_loop()
    assert len(tf1.get_default_graph().get_operations()) == before
    with tf1.Session() as second:
        second.run([tf1.global_variables_initializer(), "MakeIterator"])
        repeated(second, 5)
        assert second.run(total) == 10
