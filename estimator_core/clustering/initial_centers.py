"""Initial centers: drawn from the first points of the training input, or given."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.hooks.initialization import InitializationHook
from estimator_core.logs import logger

RANDOM = "random"
KMEANS_PLUS_PLUS = "kmeans_plus_plus"
METHODS = (RANDOM, KMEANS_PLUS_PLUS)

_POLL_SECS = 1.0


def choose(
    points: tf.Tensor, num_wanted: tf.Tensor, initial_clusters: Any, seed: int | None, num_retries: int
) -> tf.Tensor:
    """Returns up to `num_wanted` centers, float32 `[n, dimensions]`.

    `points`: the batch to draw from, `[batch_size, dimensions]`.
    `initial_clusters`: "random" draws with replacement, or takes the whole batch if it has at most
    `num_wanted` points; "kmeans_plus_plus" draws far points with a higher probability, all from one batch;
    a function of ([points], num_wanted) returns centers; an array holds the centers.
    `seed`: seed of the draw; None takes the graph's seed, or a random one if the graph has none.

    Source: the initializations of `tf.compat.v1.estimator.experimental.KMeans`. There, all seeds have
    the same effect.
    """
    if callable(initial_clusters):
        return tf.cast(initial_clusters([points], num_wanted), tf.float32)
    if not isinstance(initial_clusters, str):
        return tf.convert_to_tensor(initial_clusters, tf.float32)
    if seed is None:
        seed = tf1.get_default_graph().seed
    if initial_clusters == RANDOM:
        batch_size = tf.shape(points)[0]

        def draw() -> tf.Tensor:
            index = tf.random.uniform([num_wanted], 0, tf.cast(batch_size, tf.int64), tf.int64, seed)
            return tf.gather(points, index)

        return tf.cond(batch_size <= num_wanted, lambda: tf.identity(points), draw)
    return _kmeans_plus_plus(points, num_wanted, seed, num_retries)


def _kmeans_plus_plus(
    points: tf.Tensor, num_wanted: tf.Tensor, seed: int | None, num_retries: int
) -> tf.Tensor:
    batch_size = tf.shape(points)[0]
    message = (
        "The first batch must have as many points as there are clusters for kmeans_plus_plus. "
        "Received, batch size and clusters:"
    )
    check = tf.raw_ops.Assert(condition=batch_size >= num_wanted, data=[message, batch_size, num_wanted])
    any_seed = tf.random.uniform([], maxval=tf.int64.max, dtype=tf.int64) if seed is None else seed
    with tf.control_dependencies([check]):
        return tf.raw_ops.KmeansPlusPlusInitialization(
            points=points,
            num_to_sample=tf.cast(num_wanted, tf.int64),
            seed=any_seed,
            num_retries_per_sample=num_retries,
        )


class InitialCentersHook(InitializationHook):
    """Initializes the centers before the first step, from as many batches as needed.

    `is_chief`: True if this process initializes them; the others wait for it.
    """

    def __init__(
        self,
        initialize: Any,
        is_initialized: Any,
        is_chief: bool,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._initialize = initialize
        self._is_initialized = tf.convert_to_tensor(is_initialized)
        self._is_chief = is_chief
        self._sleep = sleep

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the initialization until all centers are initialized."""
        del coord
        while not session.run(self._is_initialized):
            if self._is_chief:
                logger.info("Initializing cluster centers.")
                session.run(self._initialize)
            else:
                self._sleep(_POLL_SECS)
