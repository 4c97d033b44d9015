"""K-means clustering as an Estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.clustering import distances, initial_centers, updates
from estimator_core.estimator import Estimator
from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE, EstimatorSpec
from estimator_core.spec.export_outputs import PredictOutput
from estimator_core.spec.mode_keys import ModeKeys


class KMeans(Estimator):
    """Groups points around centers.

    Features are the points: a float tensor `[batch_size, dimensions]`, or a dict of tensors that are
    put side by side. There are no labels. One call of `train` initializes the centers from the first
    batches that `input_fn` gives, and trains on those that follow.

    Example:
        >>> kmeans = KMeans(num_clusters=5)
        >>> kmeans.train(input_fn, steps=100)
        >>> centers = kmeans.cluster_centers()

    Args:
        num_clusters: How many centers.
        model_dir: Where checkpoints and summaries go; None means the config's, or a new temporary
            directory.
        initial_clusters: "random" (points of the first batches), "kmeans_plus_plus" (points of the
            first batch, far from each other), an array `[num_clusters, dimensions]`, or a function of
            (list of one batch of points, how many centers are missing) that returns centers.
        distance_metric: "squared_euclidean" or "cosine".
        seed: Of the initial centers; None means the seed of the config.
        use_mini_batch: True moves centers a little with each batch; False takes each batch for the
            whole data set.
        mini_batch_steps_per_iteration: Steps of `use_mini_batch` between two moves of the centers; 1
            and below moves them in each step.
        kmeans_plus_plus_num_retries: Additional candidates for each center of "kmeans_plus_plus".
        relative_tolerance: Training stops when the loss changes by less than this share of (1 + loss)
            from one step to the next; None never stops it. It makes most sense with whole batches.
        config: `RunConfig`; None means a default one.
        feature_columns: Dense columns that make the points of a dict of features; None takes the
            features as they are, in the order of their names.

    Raises:
        ValueError: An argument has a value that can't work.

    Source: `tf.compat.v1.estimator.experimental.KMeans`. There, all values of `seed` have the same
    effect, mini-batch training differs from run to run (variables are read and written in no certain
    order), and the global step also counts the step at which the input ends.
    """

    SQUARED_EUCLIDEAN_DISTANCE = distances.SQUARED_EUCLIDEAN
    COSINE_DISTANCE = distances.COSINE
    RANDOM_INIT = initial_centers.RANDOM
    KMEANS_PLUS_PLUS_INIT = initial_centers.KMEANS_PLUS_PLUS
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = "clusters"

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
        _check_choice("initialization algorithm", initial_clusters, initial_centers.METHODS)
        if distance_metric not in distances.METRICS:
            raise ValueError(
                f"Unsupported distance metric: it must be one of {distances.METRICS}. "
                f"Received: distance_metric={distance_metric!r}"
            )
        self._distance_metric = distance_metric
        model_fn = _model_fn(
            num_clusters=_num_clusters(num_clusters, initial_clusters),
            initial_clusters=initial_clusters,
            distance_metric=distance_metric,
            seed=seed,
            steps_per_iteration=max(mini_batch_steps_per_iteration, 1) if use_mini_batch else None,
            num_retries=kmeans_plus_plus_num_retries,
            relative_tolerance=relative_tolerance,
            feature_columns=feature_columns,
        )
        super().__init__(model_fn, model_dir=model_dir, config=config)

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """Yields the index of each point's center, an integer.

        Args:
            input_fn: As in `train`.
        """
        for prediction in self.predict(input_fn, predict_keys=self.CLUSTER_INDEX):
            yield prediction[self.CLUSTER_INDEX]

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """Yields each point's distances to all centers, float32 `[num_clusters]`.

        They are not squared, unlike the prediction "all_distances".

        Args:
            input_fn: As in `train`.
        """
        for prediction in self.predict(input_fn, predict_keys=self.ALL_DISTANCES):
            all_distances = prediction[self.ALL_DISTANCES]
            if self._distance_metric == distances.SQUARED_EUCLIDEAN:
                # Rounding can make the distance to a point's own center slightly negative.
                all_distances = np.sqrt(np.maximum(all_distances, 0.0))
            yield all_distances

    def score(self, input_fn: Callable[..., Any]) -> Any:
        """Returns the sum of the distances (squared ones, if Euclidean) of points to their centers.

        Args:
            input_fn: As in `train`. Only its first batch counts, so give all points as one batch;
                `evaluate` takes every batch, and its "score" is the mean of the batches' sums.
        """
        return self.evaluate(input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> Any:
        """Returns the centers, float32 `[num_clusters, dimensions]`.

        Raises:
            ValueError: There is no checkpoint yet.
        """
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)


def _check_choice(what: str, value: Any, choices: tuple[str, ...]) -> None:
    if isinstance(value, str) and value not in choices:
        raise ValueError(f"Unsupported {what} {value!r}: it must be one of {choices}.")


def _num_clusters(num_clusters: int, initial_clusters: Any) -> int:
    """Returns how many centers there will be: as many as are given, if they are."""
    if not isinstance(num_clusters, (int, np.integer)) or num_clusters < 1:
        raise ValueError(
            f"num_clusters must be a positive integer. Received: num_clusters={num_clusters!r}"
        )
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
            "There are as many clusters as initial_clusters, %d, and not num_clusters=%d.",
            shape[0],
            num_clusters,
        )
    return int(shape[0])


def _model_fn(
    num_clusters: int,
    initial_clusters: Any,
    distance_metric: str,
    seed: int | None,
    steps_per_iteration: int | None,
    num_retries: int,
    relative_tolerance: float | None,
    feature_columns: Any,
) -> Callable[..., EstimatorSpec]:
    """Returns the `model_fn`; without `steps_per_iteration` each batch is the whole data set."""

    def model_fn(features: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        points = _points(features, feature_columns)
        # Of unknown shape: the centers are made in the session, from the first points.
        no_centers = tf1.placeholder_with_default(tf.constant([], tf.float32), None)
        centers = _variable(KMeans.CLUSTER_CENTERS_VAR_NAME, no_centers)
        checked_centers = _checked_centers(centers, num_clusters)
        if steps_per_iteration is not None:  # whole batches end in normalized centers
            checked_centers = distances.normalized(checked_centers, distance_metric)
        assignment = distances.assign(points, checked_centers, distance_metric)
        loss = tf.reduce_sum(assignment.nearest_distance)
        predictions = {
            KMeans.ALL_DISTANCES: assignment.all_distances,
            KMeans.CLUSTER_INDEX: assignment.cluster_index,
        }
        if mode == ModeKeys.PREDICT:
            outputs = {key: PredictOutput(value) for key, value in predictions.items()}
            outputs[DEFAULT_SERVING_SIGNATURE] = outputs[KMeans.CLUSTER_INDEX]
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        if mode == ModeKeys.EVAL:
            metrics = {KMeans.SCORE: tf1.metrics.mean(loss)}
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)

        to_initialize = [centers]
        if steps_per_iteration is None:
            update = updates.full_batch_update(assignment, centers, num_clusters, distance_metric)
        elif steps_per_iteration == 1:
            counts = updates.counter(num_clusters, initial_count=1)  # the first center is a point
            update = updates.mini_batch_update(assignment, centers, counts)
        else:
            centers_updated = _variable("clusters_updated", no_centers)
            to_initialize.append(centers_updated)
            update = updates.mini_batch_update_in_steps(
                assignment,
                centers,
                centers_updated,
                updates.counter(num_clusters, initial_count=0),
                _variable("update_in_steps", tf.constant(steps_per_iteration, tf.int64)),
                steps_per_iteration,
            )
        is_initialized = _variable("initialized", tf.constant(False))

        def add_centers() -> tf.Operation:
            num_existing = tf.shape(centers)[0]
            new = initial_centers.choose(
                points, num_clusters - num_existing, initial_clusters, seed, num_retries
            )
            new = distances.normalized(new, distance_metric)
            existing = tf.reshape(centers, [num_existing, tf.shape(new)[1]])
            all_centers = tf.concat([existing, new], axis=0)
            assigned = [variable.assign(all_centers) for variable in to_initialize]
            with tf.control_dependencies(assigned):
                is_complete = tf.equal(tf.shape(all_centers)[0], num_clusters)
                return is_initialized.assign(is_complete, read_value=False)

        tf1.summary.scalar("loss/raw", loss)
        with tf.control_dependencies([update]):
            train_op = tf1.train.get_or_create_global_step().assign_add(1, read_value=False)
        hooks: list[Any] = [
            initial_centers.InitialCentersHook(add_centers(), is_initialized, config.is_chief)
        ]
        if relative_tolerance is not None:
            hooks.append(_RelativeToleranceHook(loss, relative_tolerance))
        return EstimatorSpec(mode, predictions, loss, train_op, training_hooks=hooks)

    return model_fn


def _variable(name: str, initial_value: tf.Tensor) -> Any:
    return tf1.get_variable(
        name, initializer=initial_value, trainable=False, validate_shape=False, use_resource=True
    )


def _points(features: Any, feature_columns: Any) -> tf.Tensor:
    """Returns the points, float32 `[batch_size, dimensions]`."""
    if isinstance(features, Mapping):
        if feature_columns is not None:
            return input_layer(features, feature_columns)
        points = tf.concat([_column(features[name]) for name in sorted(features)], axis=1)
    elif isinstance(features, (list, tuple)):
        points = tf.concat([tf.cast(part, tf.float32) for part in features], axis=0)
    else:
        points = tf.cast(features, tf.float32)
    if isinstance(points, tf.SparseTensor) or points.shape.rank not in (None, 2):
        raise ValueError(
            "The points must be a dense tensor of shape [batch_size, dimensions]. "
            f"Received: features={features}"
        )
    return points


def _column(feature: Any) -> tf.Tensor:
    """Returns a feature as coordinates of points, float32 `[batch_size, n]`."""
    column = tf.cast(feature, tf.float32)
    return column[:, tf.newaxis] if column.shape.rank == 1 else column


def _checked_centers(centers: Any, num_clusters: int) -> tf.Tensor:
    """Returns the value of the centers, once they are there."""
    value = tf.convert_to_tensor(centers)
    num_centers = tf.shape(value)[0]
    message = (
        "The model must have as many cluster centers as num_clusters says, and has none before it is "
        "trained. Received, centers and num_clusters:"
    )
    check = tf.raw_ops.Assert(
        condition=tf.equal(num_centers, num_clusters), data=[message, num_centers, num_clusters]
    )
    with tf.control_dependencies([check]):
        return tf.identity(value)


class _RelativeToleranceHook(tf1.train.SessionRunHook):
    """Stops training when the loss hardly changes any more.

    Args:
        loss: Scalar.
        tolerance: Share of (1 + loss).
    """

    def __init__(self, loss: tf.Tensor, tolerance: float):
        self._loss = loss
        self._tolerance = tolerance
        self._previous: float | None = None

    def before_run(self, run_context: Any) -> Any:
        """Asks for the loss."""
        del run_context
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Compares it with that of the step before."""
        loss = run_values.results
        if self._previous is not None:
            change = abs(loss - self._previous) / (1.0 + self._previous)
            if change < self._tolerance:
                run_context.request_stop()
        self._previous = loss
