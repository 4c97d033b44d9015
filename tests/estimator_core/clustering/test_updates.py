import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.clustering import updates
from estimator_core.clustering.distances import Assignment, assign

# Three centers; the last one is far from all points.
CENTERS = [[0.0, 0.0], [10.0, 0.0], [0.0, 99.0]]
POINTS = [[1.0, 0.0], [3.0, 2.0], [9.0, 0.0]]


def variable(name, value, dtype=tf.float32):
    return tf1.get_variable(name, initializer=tf.constant(value, dtype))


def start(session):
    session.run(tf1.global_variables_initializer())


def test_a_full_batch_moves_centers_to_the_mean_of_their_points(session):
    centers = variable("centers", CENTERS)
    assignment = assign(tf.constant(POINTS), centers, "squared_euclidean")
    update = updates.full_batch_update(assignment, centers, 3, "squared_euclidean")
    start(session)
    session.run(update)
    # A center without points is moved to the origin.
    np.testing.assert_allclose(session.run(centers), [[2, 1], [9, 0], [0, 0]], rtol=1e-5)


def test_the_means_of_cosines_have_the_length_1(session):
    centers = variable("centers", [[1.0, 0.0], [0.0, 1.0]])
    points = tf.constant([[2.0, 0.0], [0.6, 0.8], [0.8, 0.6], [0.0, 5.0]])
    index = tf.constant([0, 0, 0, 1], tf.int64)
    assignment = Assignment(tf.math.l2_normalize(points, axis=1), None, None, index)
    update = updates.full_batch_update(assignment, centers, 2, "cosine")
    start(session)
    session.run(update)
    # The sum of (1, 0), (0.6, 0.8) and (0.8, 0.6) is (2.4, 1.4).
    expected = np.array([2.4, 1.4]) / np.hypot(2.4, 1.4)
    np.testing.assert_allclose(session.run(centers), [expected, [0, 1]], rtol=1e-5)


def test_a_mini_batch_moves_centers_by_the_share_of_its_points(session):
    centers = variable("centers", CENTERS)
    counts = variable("counts", [2, 3, 7], tf.int64)
    assignment = assign(tf.constant(POINTS), centers, "squared_euclidean")
    update = updates.mini_batch_update(assignment, centers, counts)
    start(session)
    session.run(update)
    assert session.run(counts).tolist() == [4, 4, 7]
    # ((0, 0) * 2 + (1, 0) + (3, 2)) / 4 and ((10, 0) * 3 + (9, 0)) / 4
    np.testing.assert_allclose(session.run(centers), [[1, 0.5], [9.75, 0], [0, 99]], rtol=1e-6)


def test_centers_move_after_so_many_steps(session):
    """Three steps of the same batch: the sums start anew from the centers after each move."""
    centers = variable("centers", CENTERS)
    gathered = variable("gathered", CENTERS)
    counts = variable("counts", [1, 1, 1], tf.int64)
    countdown = variable("countdown", 2, tf.int64)
    assignment = assign(tf.constant(POINTS), centers, "squared_euclidean")
    update = updates.mini_batch_update_in_steps(
        assignment, centers, gathered, counts, countdown, steps_per_iteration=3
    )
    start(session)
    found = []
    for _ in range(4):
        session.run(update)
        found.append(session.run((centers, gathered, counts, countdown)))
    # Countdown 2, 1, 0: two steps gather only, the third moves first and then gathers.
    assert [int(value[3]) for value in found] == [1, 0, 2, 1]
    assert [value[2].tolist() for value in found] == [[3, 2, 1], [5, 3, 1], [2, 1, 0], [4, 2, 0]]
    np.testing.assert_allclose(found[0][0], CENTERS)
    np.testing.assert_allclose(found[1][0], CENTERS)
    # The mean of the center itself and both batches: (0 + 4 + 4) / 5 and (2 + 2) / 5, (10 + 18) / 3.
    np.testing.assert_allclose(found[1][1], [[1.6, 0.8], [28 / 3, 0], [0, 99]], rtol=1e-6)
    np.testing.assert_allclose(found[2][0], found[1][1], rtol=1e-6)
    # After the move the counts are 0: the points alone make the mean.
    np.testing.assert_allclose(found[2][1], [[2, 1], [9, 0], [0, 99]], rtol=1e-6)
    np.testing.assert_allclose(found[3][0], found[2][0])


def test_a_counter_is_no_trainable_variable(session):
    counter = updates.counter(3, 5)
    start(session)
    assert (counter.op.name, counter.dtype.base_dtype) == ("Variable", tf.int64)
    assert session.run(counter).tolist() == [5, 5, 5]
    assert tf1.trainable_variables() == []
