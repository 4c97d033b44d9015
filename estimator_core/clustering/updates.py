"""One training step of k-means: centers move to the mean of their points."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.clustering.distances import Assignment, normalized

_EPSILON = 1e-6  # makes a center without points 0 instead of NaN


def full_batch_update(
    assignment: Assignment, centers: Any, num_clusters: int, distance_metric: str
) -> tf.Operation:
    """Returns the op that sets each center to the mean of its points in this batch.

    Source: Lloyd, "Least squares quantization in PCM", 1982.
    """
    points, index = assignment.points, assignment.cluster_index
    sums = tf.math.unsorted_segment_sum(points, index, num_clusters)
    counts = tf.math.unsorted_segment_sum(tf.ones_like(points[:, :1]), index, num_clusters)
    means = normalized(sums / (counts + _EPSILON), distance_metric)
    return centers.assign(means, read_value=False)


def mini_batch_update(assignment: Assignment, centers: Any, counts: Any) -> tf.Operation:
    """Returns the op that moves each center towards its points in this batch.

    A center is the mean of its initial value and of all points that it was assigned; `counts` is the
    number of these points.

    Source: Sculley, "Web-scale k-means clustering", 2010. tf.estimator reads and writes `counts` in an
    undefined order, so that its centers differ from run to run.
    """
    cluster, position = tf.unique(assignment.cluster_index)
    num_met = tf.size(cluster)
    num_new = tf.math.unsorted_segment_sum(tf.ones_like(position, tf.int64), position, num_met)
    sums = tf.math.unsorted_segment_sum(assignment.points, position, num_met)
    num_all = tf.gather(counts, cluster) + num_new
    moved = sums - tf.cast(num_new, tf.float32)[:, tf.newaxis] * tf.gather(centers, cluster)
    steps = moved * tf.math.reciprocal(tf.cast(num_all, tf.float32))[:, tf.newaxis]
    # Read everything before the first write.
    with tf.control_dependencies([num_all, steps]):
        return tf.group(
            counts.scatter_add(tf.IndexedSlices(num_new, cluster)),
            centers.scatter_add(tf.IndexedSlices(steps, cluster)),
        )


def mini_batch_update_in_steps(
    assignment: Assignment,
    centers: Any,
    centers_updated: Any,
    counts: Any,
    update_in_steps: Any,
    steps_per_iteration: int,
) -> tf.Operation:
    """Returns the op that collects the batches of several steps before the centers move.

    `centers`: variable `[num_clusters, dimensions]`, to which points are assigned.
    `centers_updated`: variable of that shape, copied to `centers` after `steps_per_iteration`.
    `counts`: int64 variable `[num_clusters]`: number of points of `centers_updated` in this iteration.
    """

    def move() -> tf.Tensor:
        with tf.control_dependencies([update_in_steps.assign(steps_per_iteration - 1)]):
            moved = centers.assign(centers_updated)
        with (
            tf.control_dependencies([moved]),
            tf.control_dependencies([counts.assign(tf.zeros_like(counts))]),
        ):
            return tf.constant(True)

    def wait() -> tf.Tensor:
        with tf.control_dependencies([update_in_steps.assign_sub(1)]):
            return tf.constant(False)

    # Assign points to the centers before this step's move.
    with tf.control_dependencies([assignment.cluster_index, assignment.all_distances]):
        is_due = tf.less_equal(tf.identity(tf.convert_to_tensor(update_in_steps)), 0)
    with tf.control_dependencies([tf.cond(is_due, move, wait)]):
        ready = assignment._replace(cluster_index=tf.identity(assignment.cluster_index))
        return mini_batch_update(ready, centers_updated, counts)


def counter(num_clusters: int, initial_count: int) -> Any:
    """Returns the variable ("Variable" in checkpoints) that counts the points of each cluster."""
    return tf1.get_variable(
        "Variable", [num_clusters], tf.int64, tf1.initializers.constant(initial_count), trainable=False
    )
