"""The models beside LightGBM used directly on the same table, and where they can train."""

import json

import numpy as np
import pytest
import tensorflow as tf
from sklearn import metrics

import estimator_core as est
from estimator_core.boosted_trees.model_fn import MATRIX, LayerSteps, boosted_trees_model_fn, select_for_trees
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.execution.single_device import SingleDevice
from tests.estimator_core.tree_programs import Table, columns, config, library_model

TABLE = Table()
SCORES = TABLE.score.astype(np.float32)
TREES = {"n_trees": 8, "max_depth": 3}


def predictions(model, key, features=None):
    input_fn = TABLE.input_fn(features=features)
    return np.array([found[key] for found in model.predict(input_fn)])


def same_predictions(model, key, labels, weights=None, batch_size=None, tolerance=None, **of_library):
    """Trains the model and LightGBM; returns LightGBM's predictions."""
    features = TABLE.features if weights is None else {**TABLE.features, "weight": weights}
    model.train(TABLE.input_fn(labels, features, batch_size))
    expected = library_model(TABLE.matrix, labels, 8, weights, **of_library).predict(TABLE.matrix)
    found = predictions(model, key, features)[:, 0]
    np.testing.assert_allclose(found, expected, **(tolerance or {"atol": 1e-6}))
    return expected


@pytest.mark.more
def test_a_classifier_has_the_metrics_of_the_library(tmp_path):
    model = est.BoostedTreesClassifier(columns(), 1, **TREES, config=config(tmp_path))
    expected = same_predictions(model, "logistic", TABLE.labels)
    found = model.evaluate(TABLE.input_fn(batch_size=64))
    assert found["average_loss"] == pytest.approx(metrics.log_loss(TABLE.labels, expected), abs=1e-6)
    assert found["accuracy"] == pytest.approx(((expected > 0.5) == TABLE.labels).mean(), abs=1e-6)
    # 200 thresholds approximate it.
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(TABLE.labels, expected), abs=5e-3)


@pytest.mark.more
def test_a_weighted_classifier_predicts_as_the_library_does(tmp_path):
    model = est.BoostedTreesClassifier(columns(), 1, **TREES, weight_column="weight", config=config(tmp_path))
    expected = same_predictions(model, "logistic", TABLE.labels, TABLE.weights)
    unweighted = library_model(TABLE.matrix, TABLE.labels, 8).predict(TABLE.matrix)
    assert np.abs(unweighted - expected).max() > 0.01


@pytest.mark.more
def test_three_classes_with_names_and_a_center(tmp_path):
    names = ["low", "middle", "high"]
    model = est.BoostedTreesClassifier(
        columns(), 1, n_classes=3, label_vocabulary=names, center_bias=True, **TREES, config=config(tmp_path)
    ).train(TABLE.input_fn(labels=np.array(names)[TABLE.three_classes]))
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
    of_library = {"objective": "regression", "boost_from_average": center_bias}
    same_predictions(model, "predictions", SCORES, **of_library)


def test_regularization_is_for_each_example(tmp_path):
    """The squared error is twice the library's objective: half of each, times 400 rows."""
    penalties = {"l1_regularization": 0.02, "l2_regularization": 0.1, "tree_complexity": 0.03}
    others = {"min_node_weight": 0.2, "pruning_mode": "pre", "quantile_sketch_epsilon": 0.1}
    model = est.BoostedTreesRegressor(columns(), 1, **TREES, **penalties, **others, config=config(tmp_path))
    of_library = {"objective": "regression", "lambda_l1": 4.0, "lambda_l2": 20.0, "min_gain_to_split": 6.0}
    of_library |= {"min_sum_hessian_in_leaf": 40.0, "max_bin": 10}
    same_predictions(model, "predictions", SCORES, **of_library)


@pytest.mark.more
def test_the_gradients_of_a_head_grow_the_trees_of_the_objective(tmp_path):
    """The loss of LogisticRegressionHead is the cross entropy, by its derivatives alone."""
    labels = np.clip(TABLE.score / 4 + 0.5, 0, 1).astype(np.float32)
    head = est.LogisticRegressionHead(weight_column="weight")
    model = est.BoostedTreesEstimator(columns(), 2, head, **TREES, center_bias=True, config=config(tmp_path))
    of_library = {"objective": "cross_entropy", "boost_from_average": True}
    same_predictions(model, "predictions", labels, TABLE.weights, 200, tolerance={"atol": 1e-5}, **of_library)


@pytest.mark.more
def test_a_head_of_counts_beside_the_library(tmp_path):
    counts = np.random.default_rng(0).poisson(np.exp(TABLE.score / 2)).astype(np.float32)
    model = est.BoostedTreesEstimator(
        columns(), 1, est.PoissonRegressionHead(), **TREES, center_bias=True, config=config(tmp_path)
    )
    of_library = {"objective": "poisson", "boost_from_average": True}
    # The library's own max_delta_step makes its steps smaller.
    of_library["poisson_max_delta_step"] = 1e-12
    same_predictions(model, "predictions", counts, tolerance={"rtol": 1e-5}, **of_library)


@pytest.mark.more
def test_probabilities_as_labels(tmp_path):
    labels = (0.25 + 0.5 * TABLE.labels).astype(np.float32)
    model = est.BoostedTreesClassifier(columns(), 1, **TREES, config=config(tmp_path))
    same_predictions(model, "logistic", labels, objective="cross_entropy")


def test_the_matrix_can_be_predicted_as_well():
    settings = BoostingSettings(1)
    head = est.RegressionHead()
    model = est.Estimator(boosted_trees_model_fn(head, columns()[:2], settings, predicts_matrix=True))
    found = np.array([row[MATRIX] for row in model.predict(TABLE.input_fn())])
    np.testing.assert_array_equal(found, TABLE.numbers)


def test_training_makes_many_steps_in_a_call():
    found = select_for_trees(est.RunConfig(), est.ModeKeys.TRAIN, 60)
    assert isinstance(found, LayerSteps)
    assert found.steps_per_session_run == 60
    assert type(select_for_trees(est.RunConfig(), est.ModeKeys.EVAL, 60)) is SingleDevice


def test_strategies_and_clusters_are_refused(monkeypatch):
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    config = est.RunConfig(train_distribute=strategy, eval_distribute=strategy)
    for mode in (est.ModeKeys.TRAIN, est.ModeKeys.EVAL):
        with pytest.raises(ValueError, match="leave train_distribute and eval_distribute out"):
            select_for_trees(config, mode, 60)
    assert select_for_trees(config, est.ModeKeys.PREDICT, 60)
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    with pytest.raises(ValueError, match="unset TF_CONFIG"):
        select_for_trees(est.RunConfig(), est.ModeKeys.TRAIN, 60)
