"""The model_fn of k-means: the points, their centers, and the step that moves the centers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.clustering import distances, initial_centers, updates
from estimator_core.execution.current import current_execution
from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import DEFAULT_SERVING_SIGNATURE, EstimatorSpec
from estimator_core.spec.export_outputs import PredictOutput
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook

SCORE = "score"
CLUSTER_INDEX = "cluster_index"
ALL_DISTANCES = "all_distances"
CLUSTER_CENTERS = "clusters"


@dataclasses.dataclass(frozen=True)
class Clustering:
    """Settings of k-means, with the model_fn for them.

    `initial_clusters`: A method of `initial_centers`, an array, or a function.
    `seed`: seed of the initial centers; None means the seed of the config.
    `steps_per_iteration`: steps between two moves of the centers; None treats each batch as the whole data
    set.
    `relative_tolerance`: training stops when the loss changes by less than this share of (1 + loss); None
    does not stop it.
    `feature_columns`: dense columns that convert a dict of features to points; or None.
    """

    num_clusters: int
    initial_clusters: Any
    distance_metric: str
    seed: int | None
    steps_per_iteration: int | None
    num_retries: int
    relative_tolerance: float | None
    feature_columns: Any

    def model_fn(self, features: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        """Returns the `EstimatorSpec` of a mode; there are no labels."""
        points = _points(features, self.feature_columns)
        # The shape is unknown: the session creates the centers from the first points.
        no_centers = tf1.placeholder_with_default(tf.constant([], tf.float32), None)
        centers = _variable(CLUSTER_CENTERS, no_centers)
        usable = _checked_centers(centers, self.num_clusters)
        if self.steps_per_iteration is not None:  # the update of whole batches normalizes them
            usable = distances.normalized(usable, self.distance_metric)
        assignment = distances.assign(points, usable, self.distance_metric)
        loss = tf.reduce_sum(assignment.nearest_distance)
        predictions = {ALL_DISTANCES: assignment.all_distances, CLUSTER_INDEX: assignment.cluster_index}
        if mode == ModeKeys.PREDICT:
            outputs = {key: PredictOutput(value) for key, value in predictions.items()}
            outputs[DEFAULT_SERVING_SIGNATURE] = outputs[CLUSTER_INDEX]
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        if mode == ModeKeys.EVAL:
            metrics = {SCORE: tf1.metrics.mean(loss)}
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)

        num_tasks = current_execution().num_tasks_in_step
        if num_tasks > 1:
            raise ValueError(
                "KMeans can't be trained by tasks that make each step together: leave train_distribute out, "
                f"and train it on parameter servers or in one process. Received: {num_tasks} tasks"
            )
        update, to_initialize = self._update(assignment, centers, no_centers)
        is_initialized = _variable("initialized", tf.constant(False))
        tf1.summary.scalar("loss/raw", loss)
        with tf.control_dependencies([update]):
            train_op = tf1.train.get_or_create_global_step().assign_add(1, read_value=False)
        add_centers = self._add_centers(points, to_initialize, is_initialized)
        hooks: list[Hook] = [initial_centers.InitialCentersHook(add_centers, is_initialized, config.is_chief)]
        if self.relative_tolerance is not None:
            hooks.append(_RelativeToleranceHook(loss, self.relative_tolerance))
        return EstimatorSpec(mode, predictions, loss, train_op, training_hooks=hooks)

    def _update(self, assignment: Any, centers: Any, no_centers: tf.Tensor) -> tuple[tf.Operation, list[Any]]:
        """Returns the op that moves the centers, and the variables that start as initial centers."""
        if self.steps_per_iteration is None:
            update = updates.full_batch_update(assignment, centers, self.num_clusters, self.distance_metric)
            return update, [centers]
        if self.steps_per_iteration == 1:
            # The initial center counts as its first point.
            counts = updates.counter(self.num_clusters, initial_count=1)
            return updates.mini_batch_update(assignment, centers, counts), [centers]
        centers_updated = _variable("clusters_updated", no_centers)
        update = updates.mini_batch_update_in_steps(
            assignment,
            centers,
            centers_updated,
            updates.counter(self.num_clusters, initial_count=0),
            _variable("update_in_steps", tf.constant(self.steps_per_iteration, tf.int64)),
            self.steps_per_iteration,
        )
        return update, [centers, centers_updated]

    def _add_centers(self, points: tf.Tensor, to_initialize: list[Any], is_initialized: Any) -> tf.Operation:
        """Returns the op that fills the missing centers with points of a batch."""
        centers = to_initialize[0]
        num_existing = tf.shape(centers)[0]
        num_missing = self.num_clusters - num_existing
        new = initial_centers.choose(points, num_missing, self.initial_clusters, self.seed, self.num_retries)
        new = distances.normalized(new, self.distance_metric)
        existing = tf.reshape(centers, [num_existing, tf.shape(new)[1]])
        all_centers = tf.concat([existing, new], axis=0)
        assigned = [variable.assign(all_centers) for variable in to_initialize]
        with tf.control_dependencies(assigned):
            is_complete = tf.equal(tf.shape(all_centers)[0], self.num_clusters)
            return is_initialized.assign(is_complete, read_value=False)


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
    """Returns the value of the centers; fails before they are initialized."""
    value = tf.convert_to_tensor(centers)
    num_centers = tf.shape(value)[0]
    message = (
        "The model must have num_clusters cluster centers, and has none before it is "
        "trained. Received, centers and num_clusters:"
    )
    check = tf.raw_ops.Assert(
        condition=tf.equal(num_centers, num_clusters), data=[message, num_centers, num_clusters]
    )
    with tf.control_dependencies([check]):
        return tf.identity(value)


class _RelativeToleranceHook(tf1.train.SessionRunHook):
    """Stops training when the loss changes by less than a tolerance."""

    def __init__(self, loss: tf.Tensor, tolerance: float):
        self._loss = loss
        self._tolerance = tolerance
        self._previous: float | None = None

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Compares the loss with that of the previous step."""
        loss = run_values.results
        if self._previous is not None:
            change = abs(loss - self._previous) / (1.0 + self._previous)
            if change < self._tolerance:
                run_context.request_stop()
        self._previous = loss
