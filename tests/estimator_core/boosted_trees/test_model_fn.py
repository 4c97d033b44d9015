"""The models beside LightGBM used directly on the same table."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn import metrics

import estimator_core as est
from estimator_core.boosted_trees.model_fn import MATRIX, boosted_trees_model_fn
from estimator_core.boosted_trees.settings import BoostingSettings
from tests.estimator_core.tree_programs import Table, columns, config, library_model

TABLE = Table()
TREES = {"n_trees": 8, "max_depth": 3}


def predictions(model, key, features=None):
    input_fn = TABLE.input_fn(features=features)
    return np.array([found[key] for found in model.predict(input_fn)])


@pytest.mark.more
def test_a_classifier_has_the_metrics_of_the_library(tmp_path):
    model = est.BoostedTreesClassifier(columns(), 1, **TREES, config=config(tmp_path))
    found = model.train(TABLE.input_fn()).evaluate(TABLE.input_fn(batch_size=64))
    expected = library_model(TABLE.matrix, TABLE.labels, 8).predict(TABLE.matrix)
    np.testing.assert_allclose(predictions(model, "logistic")[:, 0], expected, atol=1e-6)
    assert found["average_loss"] == pytest.approx(metrics.log_loss(TABLE.labels, expected), abs=1e-6)
    assert found["accuracy"] == pytest.approx(((expected > 0.5) == TABLE.labels).mean(), abs=1e-6)
    # 200 thresholds approximate it.
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(TABLE.labels, expected), abs=5e-3)


def test_a_weighted_classifier_predicts_as_the_library_does(tmp_path):
    model = est.BoostedTreesClassifier(columns(), 1, **TREES, weight_column="weight", config=config(tmp_path))
    features = {**TABLE.features, "weight": TABLE.weights}
    model.train(TABLE.input_fn(features=features))
    expected = library_model(TABLE.matrix, TABLE.labels, 8, TABLE.weights).predict(TABLE.matrix)
    found = predictions(model, "logistic", features)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)
    unweighted = library_model(TABLE.matrix, TABLE.labels, 8).predict(TABLE.matrix)
    assert np.abs(unweighted - expected).max() > 0.01


def test_three_classes_with_names_and_a_center(tmp_path):
    names = ["low", "middle", "high"]
    model = est.BoostedTreesClassifier(
        columns(), 1, n_classes=3, label_vocabulary=names, center_bias=True, **TREES, config=config(tmp_path)
    )
    model.train(TABLE.input_fn(labels=np.array(names)[TABLE.three_classes]))
    library = library_model(
        TABLE.matrix, TABLE.three_classes, 8, objective="multiclass", num_class=3, boost_from_average=True
    )
    found = predictions(model, "probabilities")
    np.testing.assert_allclose(found, library.predict(TABLE.matrix), atol=1e-6)
    classes = predictions(model, "classes")[:, 0].astype(str)
    assert (classes == np.array(names)[TABLE.three_classes]).mean() > 0.7


@pytest.mark.more
@pytest.mark.parametrize("center_bias", [False, True])
def test_a_regressor_predicts_as_the_library_does(tmp_path, center_bias):
    model = est.BoostedTreesRegressor(columns(), 1, center_bias=center_bias, **TREES, config=config(tmp_path))
    model.train(TABLE.input_fn(labels=TABLE.score.astype(np.float32)))
    library = library_model(
        TABLE.matrix,
        TABLE.score.astype(np.float32),
        8,
        objective="regression",
        boost_from_average=center_bias,
    )
    found = predictions(model, "predictions")[:, 0]
    np.testing.assert_allclose(found, library.predict(TABLE.matrix), atol=1e-6)


@pytest.mark.more
def test_regularization_is_for_each_example(tmp_path):
    """The squared error is twice the library's objective: half of each, times 400 rows."""
    model = est.BoostedTreesRegressor(
        columns(),
        1,
        **TREES,
        l1_regularization=0.02,
        l2_regularization=0.1,
        tree_complexity=0.03,
        min_node_weight=0.2,
        pruning_mode="pre",
        quantile_sketch_epsilon=0.1,
        config=config(tmp_path),
    )
    model.train(TABLE.input_fn(labels=TABLE.score.astype(np.float32)))
    library = library_model(
        TABLE.matrix,
        TABLE.score.astype(np.float32),
        8,
        objective="regression",
        lambda_l1=4.0,
        lambda_l2=20.0,
        min_gain_to_split=6.0,
        min_sum_hessian_in_leaf=40.0,
        max_bin=10,
    )
    found = predictions(model, "predictions")[:, 0]
    np.testing.assert_allclose(found, library.predict(TABLE.matrix), atol=1e-6)


@pytest.mark.more
def test_the_gradients_of_a_head_grow_the_trees_of_the_objective(tmp_path):
    """The loss of LogisticRegressionHead is the cross entropy, by its derivatives alone."""
    features = {**TABLE.features, "weight": TABLE.weights}
    labels = np.clip(TABLE.score / 4 + 0.5, 0, 1).astype(np.float32)
    model = est.BoostedTreesEstimator(
        columns(),
        2,
        est.LogisticRegressionHead(weight_column="weight"),
        **TREES,
        center_bias=True,
        config=config(tmp_path),
    )
    model.train(TABLE.input_fn(labels=labels, features=features, batch_size=200))
    library = library_model(
        TABLE.matrix, labels, 8, TABLE.weights, objective="cross_entropy", boost_from_average=True
    )
    found = predictions(model, "predictions", features)[:, 0]
    np.testing.assert_allclose(found, library.predict(TABLE.matrix), atol=1e-5)


@pytest.mark.more
def test_a_head_of_counts_beside_the_library(tmp_path):
    counts = np.random.default_rng(0).poisson(np.exp(TABLE.score / 2)).astype(np.float32)
    model = est.BoostedTreesEstimator(
        columns(), 1, est.PoissonRegressionHead(), **TREES, center_bias=True, config=config(tmp_path)
    )
    model.train(TABLE.input_fn(labels=counts))
    library = library_model(
        TABLE.matrix,
        counts,
        8,
        objective="poisson",
        poisson_max_delta_step=1e-12,  # the library's own makes its steps smaller
        boost_from_average=True,
    )
    found = predictions(model, "predictions")[:, 0]
    np.testing.assert_allclose(found, library.predict(TABLE.matrix), rtol=1e-5)


@pytest.mark.more
@pytest.mark.parametrize(
    ("head", "labels"),
    [
        (est.MultiLabelHead(3), np.eye(3, dtype=np.int64)[TABLE.three_classes]),
        (
            est.MultiHead([est.RegressionHead(name="size"), est.BinaryClassHead(name="kind")]),
            {"size": TABLE.score.astype(np.float32), "kind": TABLE.labels},
        ),
        (est.RegressionHead(2), np.stack([TABLE.score, -TABLE.score], 1).astype(np.float32)),
    ],
    ids=["multi label", "multi head", "two numbers"],
)
def test_any_head_learns(tmp_path, head, labels):
    def input_fn():
        return tf.data.Dataset.from_tensors((TABLE.features, labels))

    model = est.BoostedTreesEstimator(columns(), 1, head, n_trees=20, max_depth=3, config=config(tmp_path))
    before = model.evaluate(input_fn)["loss"]
    after = model.train(input_fn).evaluate(input_fn)["loss"]
    assert after < 0.8 * before


def test_probabilities_as_labels(tmp_path):
    labels = (0.25 + 0.5 * TABLE.labels).astype(np.float32)
    model = est.BoostedTreesClassifier(columns(), 1, **TREES, config=config(tmp_path))
    model.train(TABLE.input_fn(labels=labels))
    library = library_model(TABLE.matrix, labels, 8, objective="cross_entropy")
    found = predictions(model, "logistic")[:, 0]
    np.testing.assert_allclose(found, library.predict(TABLE.matrix), atol=1e-6)


@pytest.mark.more
def test_wide_words_are_learned(tmp_path):
    word = tf.feature_column.categorical_column_with_hash_bucket("word", 1000)
    model = est.BoostedTreesClassifier([word], 1, **TREES, config=config(tmp_path))
    model.train(TABLE.input_fn())
    shares = {word: TABLE.labels[TABLE.word == word].mean() for word in set(TABLE.word)}
    found = predictions(model, "logistic")[:, 0]
    for word, share in shares.items():
        own = found[TABLE.word == word]
        assert np.ptp(own) == 0
        assert abs(own[0] - share) < abs(0.5 - share) + 1e-6
    assert np.ptp(found) > 0.05


def test_the_matrix_can_be_predicted_as_well():
    settings = BoostingSettings(1)
    head = est.RegressionHead()
    model_fn = boosted_trees_model_fn(head, columns()[:2], settings, predicts_matrix=True)
    model = est.Estimator(model_fn)
    found = np.array([row[MATRIX] for row in model.predict(TABLE.input_fn())])
    np.testing.assert_array_equal(found, TABLE.numbers)
