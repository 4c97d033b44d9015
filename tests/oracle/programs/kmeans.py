"""KMeans on whole batches: the reference's mini-batches differ from run to run."""

import itertools
import os

import numpy as np
import tensorflow as tf

from tests.oracle import observe
from tests.oracle.programs.program import STEPS, Scenario

fc = tf.feature_column
_RNG = np.random.RandomState(11)
_GROUPS = np.array([[4.0, 1.0, 0.0], [-3.0, 3.0, 1.0], [0.0, -4.0, 2.0], [1.0, 1.0, -3.0]])
POINTS = (np.tile(_GROUPS, [15, 1]) + 1.5 * _RNG.randn(60, 3)).astype(np.float32)
FIRST = np.array([[0, 1, 0], [0.5, 0, 1], [1, 0.5, -1], [-1, -0.5, 0.5]], np.float32)
SERVING_FEATURES = {
    "first": tf.io.FixedLenFeature([1], tf.float32),
    "others": tf.io.FixedLenFeature([2], tf.float32),
}


def _input_fn(batch_size, repeat=None):
    features = {"others": POINTS[:, 1:], "first": POINTS[:, :1]}
    return lambda: tf.data.Dataset.from_tensor_slices(features).repeat(repeat).batch(batch_size)


def _numbers(array):
    return np.asarray(array, float).ravel().tolist()


def _observed(e, model, steps):
    model.train(_input_fn(60), steps=steps)
    rows = list(itertools.islice(model.predict(_input_fn(25, repeat=1)), 30))
    one_batch, three_batches = _input_fn(60, repeat=1), _input_fn(25, repeat=1)
    last = observe.variables_of(model.latest_checkpoint())
    return {
        "losses": observe.losses_of(model.model_dir),
        "tags": observe.tags_of(model.model_dir),
        "metrics": {key: float(v) for key, v in model.evaluate(three_batches).items()},
        "scores": [float(model.score(one_batch)), float(model.score(three_batches))],
        "centers": _numbers(model.cluster_centers()),
        "prediction_keys": sorted(rows[0]),
        "cluster_index": [int(row["cluster_index"]) for row in rows],
        "all_distances": [_numbers(row["all_distances"]) for row in rows[:5]],
        "predict_cluster_index": [int(i) for i in model.predict_cluster_index(three_batches)],
        "transform": [_numbers(row) for row in itertools.islice(model.transform(one_batch), 5)],
        "variables": {name: [v["shape"], v["dtype"]] for name, v in last.items()},
        "signatures": observe.signatures_after_export(e, model, SERVING_FEATURES),
    }


def _scenario(steps=STEPS, **arguments):
    def run(e, model_dir):
        config = e.RunConfig(model_dir=model_dir, save_summary_steps=1)
        return _observed(e, e.experimental.KMeans(4, config=config, **arguments), steps)

    return Scenario(run, v1=True)


def _names_of_mini_batches(e, model_dir):
    """Variables, with their shapes, of both ways to train on mini-batches, and the first loss."""
    seen = {}
    for steps in (1, 3):
        directory = os.path.join(model_dir, str(steps))
        config = e.RunConfig(model_dir=directory, save_summary_steps=1)
        model = e.experimental.KMeans(
            4, initial_clusters=FIRST, mini_batch_steps_per_iteration=steps, config=config
        )
        model.train(_input_fn(10), steps=1)
        variables = observe.variables_of(model.latest_checkpoint())
        seen[str(steps)] = {
            "first_loss": observe.losses_of(directory)[0],
            "tags": observe.tags_of(directory),
            "variables": {name: [v["shape"], v["dtype"]] for name, v in variables.items()},
        }
    return seen


def _initial_centers(e, model_dir):
    """The centers that are drawn with the reference's seed, which no argument changes."""
    seed = 87654321
    seen = {}
    for method in ("random", "kmeans_plus_plus"):
        model = e.experimental.KMeans(4, os.path.join(model_dir, method), initial_clusters=method, seed=seed)
        model.train(_input_fn(60, repeat=1))  # ends with the batch that the centers are drawn from
        seen[method] = _numbers(model.cluster_centers())
    return seen


SCENARIOS = {
    "kmeans_euclidean": _scenario(initial_clusters=FIRST, use_mini_batch=False),
    "kmeans_cosine": _scenario(initial_clusters=FIRST, use_mini_batch=False, distance_metric="cosine"),
    "kmeans_columns": _scenario(
        initial_clusters=FIRST[:, 1:], use_mini_batch=False, feature_columns=[fc.numeric_column("others", 2)]
    ),
    "kmeans_relative_tolerance": _scenario(
        initial_clusters=FIRST, use_mini_batch=False, relative_tolerance=0.01
    ),
    "kmeans_names_of_mini_batches": Scenario(_names_of_mini_batches, v1=True),
    "kmeans_initial_centers": Scenario(_initial_centers, v1=True),
}
