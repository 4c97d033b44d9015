import numpy as np
import pytest
import tensorflow as tf

from estimator_core.clustering import distances

POINTS = tf.constant([[3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]])


def test_points_go_to_the_center_of_the_smallest_squared_distance():
    found = distances.assign(POINTS, tf.constant([[3.0, 3.0], [0.0, 0.0]]), "squared_euclidean")
    # By hand: (3 - 3)^2 + (4 - 3)^2 = 1 and 9 + 16 = 25, 9 + 1 and 4, 16 + 9 and 1.
    np.testing.assert_allclose(found.all_distances, [[1, 25], [10, 4], [25, 1]], atol=1e-5)
    np.testing.assert_allclose(found.nearest_distance, [1, 4, 1], atol=1e-5)
    assert found.cluster_index.numpy().tolist() == [0, 1, 1]
    np.testing.assert_array_equal(found.points, POINTS)


def test_points_go_to_the_center_of_the_nearest_direction():
    """Only directions count: (3, 4) has the cosines 0.6 and 0.8 with the axes."""
    found = distances.assign(POINTS, tf.constant([[1.0, 0.0], [0.0, 1.0]]), "cosine")
    np.testing.assert_allclose(found.points, [[0.6, 0.8], [0, 1], [-1, 0]], rtol=1e-6)
    np.testing.assert_allclose(found.all_distances, [[0.4, 0.2], [1, 0], [2, 1]], atol=1e-6)
    np.testing.assert_allclose(found.nearest_distance, [0.2, 0, 1], atol=1e-6)
    assert found.cluster_index.numpy().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("metric", "expected"), [("cosine", [[0.6, 0.8]]), ("squared_euclidean", [[3.0, 4.0]])]
)
def test_only_the_cosine_metric_normalizes_points(metric, expected):
    np.testing.assert_allclose(distances.normalized(POINTS[:1], metric), expected, rtol=1e-6)
