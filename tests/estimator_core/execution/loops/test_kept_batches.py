"""Batches that are kept in the session."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.kept_batches import KeptBatches


@pytest.fixture
def kept():
    """Three batches of two rows, one of three, and the end; (object, session, read, count, all, other)."""
    with tf.Graph().as_default():
        rows = tf.data.Dataset.from_tensor_slices(np.arange(9, dtype=np.float32))
        batches = rows.take(6).batch(2).concatenate(rows.skip(6).batch(3))
        iterator = tf1.data.make_initializable_iterator(batches)
        kept = KeptBatches([tf1.placeholder(tf.float32, [None]), tf1.placeholder(tf.int64, [])])

        def next_batch():
            batch = iterator.get_next()
            return [batch, tf.cast(batch[0], tf.int64) * 10]

        read = kept.read_loop(next_batch)
        outputs = kept.count(), kept.stacks(), kept.other()
        with tf1.Session() as session:
            session.run(iterator.initializer)
            yield kept, session, read, outputs


def test_batches_of_one_shape_are_kept_and_another_shape_ends_the_reading(kept):
    batches, session, read, (count, stacks, other) = kept
    feeds = batches.start(session, [[5, 2], [5]])
    assert not session.run(read, {batches.wanted: 2, **feeds})
    assert session.run(count) == 2
    assert session.run(count) == 0  # they are handed out once
    values, numbers = session.run(stacks)
    np.testing.assert_array_equal(values[:2], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(numbers[:2], [0, 20])
    assert session.run(read, {batches.wanted: 5, **feeds})
    assert session.run(count) == 1
    values, numbers = session.run(stacks)
    np.testing.assert_array_equal(values[0], [4, 5])
    assert numbers[0] == 40
    values, number = session.run(other)
    np.testing.assert_array_equal(values, [6, 7, 8])
    assert number == 60


def test_the_end_of_the_input_loses_none(kept):
    batches, session, read, (count, stacks, _) = kept
    feeds = batches.start(session, [[5, 3], [5]])
    for _ in range(3):  # of two rows each: not the shape that is kept
        assert session.run(read, {batches.wanted: 5, **feeds})
        assert session.run(count) == 0
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(read, {batches.wanted: 5, **feeds})
    assert session.run(count) == 1
    np.testing.assert_array_equal(session.run(stacks)[0][0], [6, 7, 8])
