"""The model of k-means in each mode, by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.clustering.model_fn import Clustering

CENTERS = np.float32([[0.0, 0.0], [4.0, 0.0]])
# Squared distances to their centers: 1, 4 and 1.
POINTS = np.float32([[1.0, 0.0], [0.0, 2.0], [4.0, 1.0]])


def clustering(**changes):
    settings = {"num_clusters": 2, "initial_clusters": CENTERS, "distance_metric": "squared_euclidean"}
    others = {"seed": None, "steps_per_iteration": None, "num_retries": 2, "relative_tolerance": None}
    return Clustering(**settings, **{**others, "feature_columns": None, **changes})


def run(model, mode, fetches, features=POINTS, steps=0):
    """Builds the model, puts its centers in place, makes steps, and reads the values asked for."""
    with tf.Graph().as_default():
        tf1.train.create_global_step()
        features = tf.nest.map_structure(tf.constant, features)
        spec = model.model_fn(features, mode, est.RunConfig())
        centers = tf1.global_variables("clusters")[0]
        init = [v.initializer for v in tf1.global_variables() if v is not centers]
        with tf1.Session() as session:
            session.run([*init, centers.assign(CENTERS)])
            session.run(tf1.local_variables_initializer())
            for _ in range(steps):
                session.run(spec.train_op)
            return session.run(fetches(spec, centers))


DISTANCES = [[1, 9], [4, 20], [17, 1]]


@pytest.mark.parametrize(
    "features", [POINTS, {"b": POINTS[:, 1], "a": POINTS[:, :1]}], ids=["points", "by name"]
)
def test_predictions_are_all_distances_and_the_nearest_center(features):
    predictions = run(clustering(), "infer", lambda spec, _: spec.predictions, features)
    np.testing.assert_allclose(predictions["all_distances"], DISTANCES, atol=1e-5)
    assert predictions["cluster_index"].tolist() == [0, 0, 1]


def test_the_score_is_the_sum_of_the_nearest_distances():
    found = run(clustering(), "eval", lambda spec, _: [spec.loss, spec.eval_metric_ops["score"][1]])
    assert found == pytest.approx([6.0, 6.0])


def test_whole_batches_move_the_centers_to_the_means():
    centers, step = run(
        clustering(), "train", lambda _, centers: [centers, tf1.train.get_global_step()], steps=1
    )
    np.testing.assert_allclose(centers, [[0.5, 1.0], [4.0, 1.0]], atol=1e-5)
    assert step == 1


@pytest.mark.parametrize("relative_tolerance", [None, 0.3])
def test_a_tolerance_adds_a_hook(graph, relative_tolerance):
    tf1.train.create_global_step()
    model = clustering(relative_tolerance=relative_tolerance)
    spec = model.model_fn(tf.constant(POINTS), "train", est.RunConfig())
    assert len(spec.training_hooks) == (1 if relative_tolerance is None else 2)


def test_points_of_three_dimensions_are_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be a dense tensor of shape"):
        clustering().model_fn(tf.zeros([2, 2, 2]), "infer", est.RunConfig())


def test_an_untrained_model_says_so(session):
    tf1.train.create_global_step()
    spec = clustering().model_fn(tf.constant(POINTS), "infer", est.RunConfig())
    session.run(tf1.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="has none before it is trained"):
        session.run(spec.predictions)
