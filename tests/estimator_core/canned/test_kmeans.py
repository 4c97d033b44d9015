"""KMeans against scikit-learn, and against the same updates written in NumPy."""

import inspect

import numpy as np
import pytest
import sklearn.cluster
import tensorflow as tf

import estimator_core as est
from estimator_core.canned.kmeans import KMeans

RNG = np.random.RandomState(0)
# Three groups of ten points, in an order that gives each batch points of all of them.
POINTS = (RNG.randn(30, 2) + np.tile([[6.0, 2.0], [-5.0, 3.0], [1.0, -6.0]], [10, 1])).astype("f4")
FIRST = np.float32([[0.0, 0.5], [1.0, 1.0], [0.5, -1.0]])


def points(batch_size=30, repeat=None):
    def input_fn():
        return tf.data.Dataset.from_tensor_slices(POINTS).repeat(repeat).batch(batch_size)

    return input_fn


def kmeans(tmp_path, initial_clusters=FIRST, num_clusters=3, tf_random_seed=None, **arguments):
    config = est.RunConfig(model_dir=str(tmp_path), tf_random_seed=tf_random_seed)
    return KMeans(num_clusters, initial_clusters=initial_clusters, config=config, **arguments)


def nearest(batch, centers):
    return np.argmin(((batch[:, None] - centers[None]) ** 2).sum(axis=2), axis=1)


def mini_batches(steps, batch_size=6):
    batches = POINTS.reshape(-1, batch_size, 2).astype("f8")
    return [batches[step % len(batches)] for step in range(steps)]


def test_arguments_are_those_of_tf_estimator():
    names = "num_clusters model_dir initial_clusters distance_metric seed use_mini_batch "
    names += "mini_batch_steps_per_iteration kmeans_plus_plus_num_retries relative_tolerance config "
    names += "feature_columns"
    assert list(inspect.signature(KMeans.__init__).parameters)[1:] == names.split()


def test_whole_batches_end_in_the_centers_of_scikit_learn(tmp_path):
    model = kmeans(tmp_path, use_mini_batch=False).train(points(), steps=10)
    theirs = sklearn.cluster.KMeans(3, init=FIRST, n_init=1, max_iter=10, tol=0).fit(POINTS)
    np.testing.assert_allclose(model.cluster_centers(), theirs.cluster_centers_, rtol=1e-4)
    assert model.score(points(repeat=1)) == pytest.approx(theirs.inertia_, rel=1e-5)
    assert list(model.predict_cluster_index(points(7, repeat=1))) == theirs.labels_.tolist()
    distances = np.stack(list(model.transform(points(7, repeat=1))))
    np.testing.assert_allclose(distances, theirs.transform(POINTS), rtol=1e-4, atol=1e-4)
    (prediction, *_) = model.predict(points(repeat=1))
    np.testing.assert_allclose(prediction["all_distances"], distances[0] ** 2, rtol=1e-4)


def test_the_score_of_an_evaluation_is_the_mean_over_batches(tmp_path):
    model = kmeans(tmp_path, use_mini_batch=False).train(points(), steps=1)
    centers = model.cluster_centers()
    squares = [np.min(((batch[:, None] - centers) ** 2).sum(2), axis=1).sum()
               for batch in np.split(POINTS, [12, 24])]  # fmt: skip
    results = model.evaluate(points(12, repeat=1))
    assert sorted(results) == ["global_step", "loss", "score"]
    assert results["score"] == pytest.approx(np.mean(squares), rel=1e-5)
    assert model.score(points(12, repeat=1)) == pytest.approx(squares[0], rel=1e-5)


def counted_in(batch, centers, updated, counts):
    """Moves the updated centers by the share of the points that are nearest to each of the centers."""
    index = nearest(batch, centers)
    for cluster in set(index):
        mine = batch[index == cluster]
        counts[cluster] += len(mine)
        updated[cluster] += (mine - updated[cluster]).sum(axis=0) / counts[cluster]


def test_mini_batches_move_centers_by_the_share_of_their_points(tmp_path):
    centers, counts = FIRST.astype("f8"), np.ones(3, int)
    for batch in mini_batches(steps=23):
        counted_in(batch, centers, centers, counts)
    model = kmeans(tmp_path).train(points(6), steps=23)
    np.testing.assert_allclose(model.cluster_centers(), centers, rtol=1e-4)
    assert model.get_variable_value("Variable").tolist() == counts.tolist()
    assert sorted(model.get_variable_names()) == ["Variable", "clusters", "global_step", "initialized"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("steps", [1, 4, 5, 9, 14])
def test_centers_move_after_several_steps(tmp_path, steps):
    """Batches are assigned to the centers of the last move, and counted from there."""
    centers, updated, counts = FIRST.astype("f8"), FIRST.astype("f8"), np.zeros(3, int)
    for step, batch in enumerate(mini_batches(steps)):
        if step and step % 4 == 0:
            moved, counts = updated.copy(), np.zeros(3, int)
            counted_in(batch, centers, updated, counts)
            centers = moved
        else:
            counted_in(batch, centers, updated, counts)
    model = kmeans(tmp_path, mini_batch_steps_per_iteration=4).train(points(6), steps=steps)
    np.testing.assert_allclose(model.cluster_centers(), centers, rtol=1e-4)
    np.testing.assert_allclose(model.get_variable_value("clusters_updated"), updated, rtol=1e-4)
    assert model.get_variable_value("Variable").tolist() == counts.tolist()


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_cosine_distances_cluster_points_by_direction(tmp_path):
    directions, centers = unit(POINTS), unit(FIRST)
    for _ in range(5):
        index = np.argmax(directions @ centers.T, axis=1)
        centers = unit(np.stack([directions[index == i].mean(axis=0) for i in range(3)]))
    model = kmeans(tmp_path, use_mini_batch=False, distance_metric="cosine").train(points(), steps=5)
    np.testing.assert_allclose(model.cluster_centers(), centers, rtol=1e-5)
    expected = 1 - directions @ centers.T
    np.testing.assert_allclose(np.stack(list(model.transform(points(repeat=1)))), expected, atol=1e-6)
    assert model.score(points(repeat=1)) == pytest.approx(expected.min(axis=1).sum(), rel=1e-4)
    assert list(model.predict_cluster_index(points(repeat=1))) == expected.argmin(axis=1).tolist()


def test_mini_batches_of_cosines_learn_too(tmp_path):
    model = kmeans(tmp_path, distance_metric="cosine").train(points(6), steps=50)
    whole = sklearn.cluster.KMeans(3, n_init=5, random_state=0).fit(unit(POINTS))
    # Points of length 1: their squared distance is twice the cosine distance, about centers' length.
    assert model.score(points(repeat=1)) == pytest.approx(whole.inertia_ / 2, rel=0.02)


def initial(model):
    """Returns the centers of the checkpoint that is written before the first step."""
    return tf.train.load_variable(f"{model.model_dir}/model.ckpt-0", "clusters")


def test_random_centers_are_points_of_as_many_batches_as_it_takes(tmp_path):
    model = kmeans(tmp_path / "one", "random", seed=4).train(points(10), steps=1)
    first_batch = {tuple(point) for point in POINTS[:10]}
    assert {tuple(center) for center in initial(model)} <= first_batch
    model = kmeans(tmp_path / "three", "random", num_clusters=8, seed=4).train(points(3), steps=1)
    centers = initial(model)
    np.testing.assert_array_equal(centers[:6], POINTS[:6])  # both batches as a whole
    assert {tuple(center) for center in centers[6:]} <= {tuple(point) for point in POINTS[6:9]}


@pytest.mark.more
@pytest.mark.parametrize("method", ["random", "kmeans_plus_plus"])
def test_the_seed_decides(tmp_path, method):
    def centers(run, **arguments):
        return initial(kmeans(tmp_path / run, method, **arguments).train(points(), steps=1)).tolist()

    assert centers("a", seed=1) == centers("b", seed=1)
    assert centers("a2", seed=1) != centers("c", seed=2)
    assert centers("d", tf_random_seed=5) == centers("e", tf_random_seed=5)
    assert len(centers("f")) == 3  # without any seed


def test_kmeans_plus_plus_finds_the_groups(tmp_path):
    model = kmeans(tmp_path, "kmeans_plus_plus", seed=2, use_mini_batch=False).train(points(), steps=5)
    theirs = sklearn.cluster.KMeans(3, n_init=5, random_state=0).fit(POINTS)
    assert model.score(points(repeat=1)) == pytest.approx(theirs.inertia_, rel=1e-4)


@pytest.mark.more
def test_a_function_or_an_array_gives_the_centers(tmp_path, caplog):
    def one_at_a_time(batches, num_missing):
        (batch,) = batches
        return batch[:1]

    model = kmeans(tmp_path / "function", one_at_a_time).train(points(5), steps=1)
    np.testing.assert_array_equal(initial(model), POINTS[[0, 5, 10]])
    # An array takes no batch away, and has as many centers as there are.
    model = kmeans(tmp_path / "array", use_mini_batch=False).train(points(repeat=1))
    assert model.get_variable_value("global_step") == 1
    np.testing.assert_array_equal(initial(model), FIRST)
    model = kmeans(tmp_path / "two", FIRST[:2], num_clusters=3).train(points(), steps=1)
    assert model.cluster_centers().shape == (2, 2)
    assert "num_clusters=3" in caplog.text


@pytest.mark.more
def test_a_second_training_continues(tmp_path):
    kmeans(tmp_path / "twice", use_mini_batch=False).train(points(), steps=2)
    twice = kmeans(tmp_path / "twice", "random", use_mini_batch=False).train(points(), steps=1)
    once = kmeans(tmp_path / "once", use_mini_batch=False).train(points(), steps=3)
    np.testing.assert_array_equal(twice.cluster_centers(), once.cluster_centers())


def test_training_stops_when_the_loss_hardly_changes(tmp_path):
    model = kmeans(tmp_path, use_mini_batch=False, relative_tolerance=1e-3).train(points(), steps=100)
    centers, losses = FIRST.astype("f8"), []
    while len(losses) < 2 or abs(losses[-1] - losses[-2]) / (1 + losses[-2]) >= 1e-3:
        squares = ((POINTS[:, None] - centers[None]) ** 2).sum(axis=2)
        losses.append(squares.min(axis=1).sum())
        index = squares.argmin(axis=1)
        centers = np.stack([POINTS[index == i].mean(axis=0) for i in range(3)])
    assert 2 < len(losses) < 100
    assert model.get_variable_value("global_step") == len(losses)


def test_dicts_of_features(tmp_path):
    def input_fn():
        features = {"b": POINTS[:, 1:], "a": POINTS[:, 0]}
        return tf.data.Dataset.from_tensor_slices(features).repeat().batch(30)

    plain = kmeans(tmp_path / "plain", use_mini_batch=False).train(points(), steps=2)
    by_name = kmeans(tmp_path / "by_name", use_mini_batch=False).train(input_fn, steps=2)
    np.testing.assert_array_equal(by_name.cluster_centers(), plain.cluster_centers())

    columns = [tf.feature_column.numeric_column("b")]
    first = FIRST[:, 1:]
    of_columns = kmeans(tmp_path / "columns", first, use_mini_batch=False, feature_columns=columns)
    of_columns.train(input_fn, steps=4)
    theirs = sklearn.cluster.KMeans(3, init=first, n_init=1, max_iter=4).fit(POINTS[:, 1:])
    np.testing.assert_allclose(of_columns.cluster_centers(), theirs.cluster_centers_, rtol=1e-4)


def test_the_exported_model_has_the_centers(tmp_path):
    model = kmeans(tmp_path / "model").train(points(), steps=3)

    def receiver_fn():
        points = tf.compat.v1.placeholder(tf.float32, [None, 2])
        return est.export.TensorServingInputReceiver(points, {"points": points})

    loaded = tf.saved_model.load(model.export_saved_model(str(tmp_path / "export"), receiver_fn))
    assert sorted(loaded.signatures) == ["all_distances", "cluster_index", "serving_default"]
    predicted = list(model.predict(points(repeat=1)))
    for name, signature in loaded.signatures.items():
        key = "cluster_index" if name == "serving_default" else name
        answer = signature(points=tf.constant(POINTS))["output"]
        np.testing.assert_allclose(answer, [row[key] for row in predicted], rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KMeans(3, initial_clusters="kmc2"), "Unsupported initialization algorithm 'kmc2'"),
        (lambda: KMeans(3, distance_metric="l1"), "Unsupported distance metric.*'l1'"),
        (lambda: KMeans(0), "num_clusters must be a positive integer.*num_clusters=0"),
        (lambda: KMeans(2.5), "num_clusters must be a positive integer"),
        (lambda: KMeans(3, initial_clusters=np.ones(3)), r"\[num_clusters, dimensions\]"),
    ],
)
def test_what_can_not_work(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "input_fn", "error", "message"),
    [
        (["kmeans_plus_plus"], points(2), tf.errors.InvalidArgumentError, "as many points as there are"),
        ([], lambda: tf.data.Dataset.from_tensor_slices(POINTS), ValueError, r"\[batch_size, dimensions\]"),
        ([], lambda: points()().map(lambda x: (x, x[:, 0])), ValueError, "model_fn does not take labels"),
    ],
    ids=["fewer points than clusters", "no batches", "labels"],
)
def test_inputs_that_can_not_work(tmp_path, arguments, input_fn, error, message):
    with pytest.raises(error, match=message):
        kmeans(tmp_path, *arguments).train(input_fn, steps=1)


def test_there_is_no_prediction_before_training_and_a_model_keeps_its_number_of_clusters(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="none before it is trained"):
        list(kmeans(tmp_path).predict(points(repeat=1)))
    kmeans(tmp_path).train(points(), steps=1)
    other = kmeans(tmp_path, "random", num_clusters=5, use_mini_batch=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have num_clusters cluster centers"):
        other.train(points(), steps=1)
