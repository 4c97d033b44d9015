"""K-means clustering as an Estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from estimator_core.clustering import distances, initial_centers, model_fn
from estimator_core.estimator import Estimator
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig
from estimator_core.spec.types import InputFn


class KMeans(Estimator):
    """Groups points around centers.

    The points are the features: a float tensor `[batch_size, dimensions]`, or a dict of tensors to
    concatenate. There are no labels. One call of `train` initializes the centers from the first
    batches of `input_fn`, and trains on the batches that follow.

    Example:
        >>> kmeans = KMeans(num_clusters=5)
        >>> kmeans.train(input_fn, steps=100)
        >>> centers = kmeans.cluster_centers()

    Args:
        num_clusters: Number of centers.
        model_dir: Directory of checkpoints and summaries; None means the config's, or a new temporary
            directory.
        initial_clusters: "random" (points of the first batches), "kmeans_plus_plus" (points of the
            first batch, far from each other), an array `[num_clusters, dimensions]`, or a function of
            (list of one batch of points, number of missing centers) that returns centers.
        distance_metric: "squared_euclidean" or "cosine".
        seed: Seed of the initial centers; None means the seed of the config.
        use_mini_batch: True moves centers a little with each batch; False treats each batch as the
            whole data set.
        mini_batch_steps_per_iteration: Steps of `use_mini_batch` between two moves of the centers; 1
            and below moves them in each step.
        kmeans_plus_plus_num_retries: Additional candidates for each center of "kmeans_plus_plus".
        relative_tolerance: Training stops when the loss changes by less than this share of (1 + loss)
            from one step to the next; None does not stop it. It makes most sense with whole batches.
        config: `RunConfig`; None means a default one.
        feature_columns: Dense columns that convert a dict of features to points; None takes the
            features as they are, in the order of their names.

    Raises:
        ValueError: An argument has an invalid value.

    Source: `tf.compat.v1.estimator.experimental.KMeans`. There, all values of `seed` have the same
    effect, mini-batch training differs from run to run (variables are read and written in an undefined
    order), and the global step also counts the step at which the input ends.
    """

    SQUARED_EUCLIDEAN_DISTANCE = distances.SQUARED_EUCLIDEAN
    COSINE_DISTANCE = distances.COSINE
    RANDOM_INIT = initial_centers.RANDOM
    KMEANS_PLUS_PLUS_INIT = initial_centers.KMEANS_PLUS_PLUS
    SCORE = model_fn.SCORE
    CLUSTER_INDEX = model_fn.CLUSTER_INDEX
    ALL_DISTANCES = model_fn.ALL_DISTANCES
    CLUSTER_CENTERS_VAR_NAME = model_fn.CLUSTER_CENTERS

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        initial_clusters: Any = initial_centers.RANDOM,
        distance_metric: str = distances.SQUARED_EUCLIDEAN,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Any = None,
    ):
        if isinstance(initial_clusters, str) and initial_clusters not in initial_centers.METHODS:
            raise ValueError(
                f"Unsupported initialization algorithm {initial_clusters!r}: it must be one of "
                f"{initial_centers.METHODS}."
            )
        if distance_metric not in distances.METRICS:
            raise ValueError(
                f"Unsupported distance metric: it must be one of {distances.METRICS}. "
                f"Received: distance_metric={distance_metric!r}"
            )
        self._distance_metric = distance_metric
        clustering = model_fn.Clustering(
            num_clusters=_num_clusters(num_clusters, initial_clusters),
            initial_clusters=initial_clusters,
            distance_metric=distance_metric,
            seed=seed,
            steps_per_iteration=max(mini_batch_steps_per_iteration, 1) if use_mini_batch else None,
            num_retries=kmeans_plus_plus_num_retries,
            relative_tolerance=relative_tolerance,
            feature_columns=feature_columns,
        )
        super().__init__(clustering.model_fn, model_dir=model_dir, config=config)

    def predict_cluster_index(self, input_fn: InputFn) -> Iterator[Any]:
        """Yields the index of each point's center, an integer.

        Args:
            input_fn: See `train`.
        """
        for prediction in self.predict(input_fn, predict_keys=self.CLUSTER_INDEX):
            yield prediction[self.CLUSTER_INDEX]

    def transform(self, input_fn: InputFn) -> Iterator[Any]:
        """Yields each point's distances to all centers, float32 `[num_clusters]`.

        They are not squared, unlike the prediction "all_distances".

        Args:
            input_fn: See `train`.
        """
        for prediction in self.predict(input_fn, predict_keys=self.ALL_DISTANCES):
            all_distances = prediction[self.ALL_DISTANCES]
            if self._distance_metric == distances.SQUARED_EUCLIDEAN:
                # Rounding can make the distance to a point's own center slightly negative.
                all_distances = np.sqrt(np.maximum(all_distances, 0.0))
            yield all_distances

    def score(self, input_fn: InputFn) -> Any:
        """Returns the sum of distances from points to their centers (squared if Euclidean).

        Args:
            input_fn: See `train`. Only its first batch is used, so give all points as one batch;
                `evaluate` takes every batch, and its "score" is the mean of the batches' sums.
        """
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> Any:
        """Returns the centers, float32 `[num_clusters, dimensions]`.

        Raises:
            ValueError: There is no checkpoint yet.
        """
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


def _num_clusters(num_clusters: int, initial_clusters: Any) -> int:
    """Returns the number of centers: the number of given ones, if `initial_clusters` is an array."""
    if not isinstance(num_clusters, (int, np.integer)) or num_clusters < 1:
        raise ValueError(f"num_clusters must be a positive integer. Received: num_clusters={num_clusters!r}")
    if isinstance(initial_clusters, str) or callable(initial_clusters):
        return int(num_clusters)
    shape = np.shape(initial_clusters)
    if len(shape) != 2:
        raise ValueError(
            "An array of initial_clusters must have the shape [num_clusters, dimensions]. "
            f"Received: shape={shape}"
        )
    if shape[0] != num_clusters:
        logger.warning(
            "The number of clusters is that of initial_clusters, %d, not num_clusters=%d.",
            shape[0],
            num_clusters,
        )
    return int(shape[0])
