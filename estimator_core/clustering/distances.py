"""Distances of points to cluster centers."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

SQUARED_EUCLIDEAN = "squared_euclidean"
COSINE = "cosine"
METRICS = (SQUARED_EUCLIDEAN, COSINE)


class Assignment(NamedTuple):
    """The nearest center of each point, and its distances to all centers."""

    # float32 `[batch_size, dimensions]`, normalized to length 1 for cosine distances.
    points: tf.Tensor
    all_distances: tf.Tensor  # float32 `[batch_size, num_clusters]`
    nearest_distance: tf.Tensor  # float32 `[batch_size]`, the distance to the nearest center
    cluster_index: tf.Tensor  # int64 `[batch_size]`, the nearest center


def normalized(points: Any, distance_metric: str) -> tf.Tensor:
    """Returns the points, normalized to length 1 for cosine distances."""
    return tf.math.l2_normalize(points, axis=1) if distance_metric == COSINE else points


def assign(points: tf.Tensor, centers: tf.Tensor, distance_metric: str) -> Assignment:
    """Returns the nearest center, normalized for the metric, of each point."""
    points = normalized(points, distance_metric)
    products = tf.matmul(points, centers, transpose_b=True)
    if distance_metric == COSINE:
        all_distances = 1.0 - products
        scale = 0.5  # the squared distance of vectors of length 1 is twice their cosine distance
    else:
        squared_points = tf.reduce_sum(tf.square(points), axis=1, keepdims=True)
        squared_centers = tf.reduce_sum(tf.square(centers), axis=1, keepdims=True)
        all_distances = squared_points - 2.0 * products + tf.transpose(squared_centers)
        scale = 1.0
    nearest = tf.raw_ops.NearestNeighbors(points=points, centers=centers, k=1)
    return Assignment(
        points,
        all_distances,
        scale * tf.squeeze(nearest.nearest_center_distances, axis=[-1]),
        tf.squeeze(nearest.nearest_center_indices, axis=[-1]),
    )
