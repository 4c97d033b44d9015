import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets

import estimator_core as est
from estimator_core.boosted_trees import boosting as boosting_module
from estimator_core.boosted_trees.boosting import Boosting, BoostingState
from estimator_core.boosted_trees.forest import concatenated
from estimator_core.boosted_trees.model_text import forest_from_text
from estimator_core.boosted_trees.objectives import BY_GRADIENTS, Objective, head_objective
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.boosted_trees.training_data import TrainingData
from tests.estimator_core.programs import assert_same
from tests.estimator_core.tree_programs import Table, library_model

SETTINGS = BoostingSettings(n_batches_per_layer=2, n_trees=6, max_depth=3)
BINARY = head_objective(est.BinaryClassHead(), np.array([[0.0], [1.0]]))


def new_state(dimension=1):
    return BoostingState(concatenated([]), np.zeros(dimension), 0, 0, 0)


def boosting(state=None, table=None, objective=BINARY, settings=SETTINGS, gradients=None, steps=0):
    table = table or Table()
    data = TrainingData(table.matrix, None, None)
    labels = table.labels.astype(np.float32) if gradients is None else None
    grown = Boosting(settings, objective, data, labels, gradients, state or new_state())
    if steps:
        grown.advance(steps)
    return grown


def same(left, right):
    assert_same(vars(left), vars(right))


def library_forest(trees, **changes):
    table = Table()
    return forest_from_text(library_model(table.matrix, table.labels, trees, **changes).model_to_string())


def test_leaves_and_siblings():
    forest = library_forest(2)
    inner = ~forest.is_leaf
    assert inner.any()
    assert (forest.threshold[forest.is_leaf] == np.inf).all()
    left = forest.left[inner]
    np.testing.assert_array_equal(forest.depth[left], forest.depth[inner] + 1)
    np.testing.assert_array_equal(forest.depth[left + 1], forest.depth[inner] + 1)
    np.testing.assert_array_equal(forest.count[left] + forest.count[left + 1], forest.count[inner])


def test_a_tree_cut_to_two_layers_is_the_one_that_the_library_grows_with_two():
    cut, two_layers = library_forest(1).truncated(2), library_forest(1, max_depth=2)
    # The library's text has six digits of the values of inner nodes.
    np.testing.assert_allclose(cut.value, two_layers.value, rtol=5e-6)
    for name in ("feature", "threshold", "left", "nan_is_left", "count", "depth", "root", "gain"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(two_layers, name), err_msg=name)


def test_six_steps_grow_a_tree_of_the_library():
    grown = boosting()
    assert grown.steps_left == 36
    grown.advance(18)
    assert (grown.finished, grown.steps_left) == (3, 18)
    state = grown.state()
    assert (state.finished, state.steps_in_tree) == (3, 0)
    same(state.forest, library_forest(3))


@pytest.mark.parametrize(("steps", "layers"), [(7, 0), (8, 1), (9, 1), (10, 2), (11, 2)])
def test_an_unfinished_tree_has_the_layers_that_are_due(steps, layers):
    state = boosting(steps=steps).state()
    assert (state.finished, state.steps_in_tree) == (1, steps - 6)
    whole = library_forest(2)
    expected = [whole.trees(0, 1)]
    if layers:
        expected.append(whole.trees(1, 2).truncated(layers))
    same(state.forest, concatenated(expected))


@pytest.mark.parametrize("steps", [5, 6, 13, 16, 17])
@pytest.mark.parametrize("by_gradients", [False, True], ids=["objective", "gradients"])
def test_a_training_that_goes_on_grows_the_same_trees(steps, by_gradients):
    table = Table()

    def gradients(logits):
        share = 1 / (1 + np.exp(-logits))
        return share - table.labels[:, np.newaxis], share * (1 - share)

    kind = {"objective": BY_GRADIENTS, "gradients": gradients} if by_gradients else {}
    whole, first = boosting(**kind, steps=36), boosting(**kind, steps=steps)
    again = boosting(first.state(), **kind)
    assert again.steps_left == 36 - steps
    again.advance(36 - steps)
    same(again.state().forest, whole.state().forest)
    assert again.steps_left == 0


def test_logits_are_the_sums_of_finished_trees():
    table = Table()
    grown = boosting()
    np.testing.assert_array_equal(grown.logits(), np.zeros((400, 1)))
    grown.advance(15)
    model = library_model(table.matrix, table.labels, 2)
    expected = model.predict(table.matrix, raw_score=True)[:, np.newaxis]
    np.testing.assert_allclose(grown.logits(), expected, atol=1e-12)
    np.testing.assert_allclose(boosting(grown.state()).logits(), expected, atol=1e-12)


def test_several_logits_by_gradients():
    """Squared errors of two numbers: two regressions side by side."""
    table = Table()
    targets = np.stack([table.score, -2 * table.score], axis=1)
    objective = Objective({"objective": "none", "num_class": 2})
    grown = boosting(
        new_state(2),
        objective=objective,
        gradients=lambda logits: (logits - targets, np.ones_like(logits)),
        steps=12,
    )
    assert grown.state().forest.num_trees == 4
    for index in range(2):
        model = library_model(table.matrix, targets[:, index], 2, objective="regression")
        expected = model.predict(table.matrix)
        np.testing.assert_allclose(grown.logits()[:, index], expected, atol=1e-6)


def test_when_no_split_helps_trees_are_single_leaves():
    table = Table()
    table.labels = np.zeros_like(table.labels)
    grown = boosting(table=table, steps=36)
    forest = grown.state().forest
    assert (grown.steps_left, forest.num_trees) == (0, 6)
    assert not np.delete(forest.value, forest.root).any()
    first = boosting(new_state(), table=table, steps=13)
    assert boosting(first.state(), table=table).steps_left == 23


def test_trees_of_another_model_do_not_count():
    grown = boosting(boosting(steps=12).state()._replace(warm_started=2))
    assert grown.steps_left == 36
    grown.advance(36)
    same(grown.state().forest, library_forest(8))


def test_classes_that_are_told_apart_leave_no_leaf_without_a_row():
    """LightGBM stopped with an error at such data, where hardly any loss is left."""
    digits = datasets.load_digits()
    labels = digits.target[:900].astype(np.float32)
    data = TrainingData(digits.data[:900].astype(np.float32), None, None)
    settings = BoostingSettings(1, n_trees=60, max_depth=6, l2_regularization=1e-6)
    objective = head_objective(est.MultiClassHead(10), labels[:, np.newaxis].astype(np.int64))
    grown = Boosting(settings, objective, data, labels, None, new_state(10))
    grown.advance(360)
    assert grown.state().forest.num_trees == 600


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 3, 400, dtype=np.float32)])
@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("leaf", ["min_sum_hessian_in_leaf", "min_data_in_leaf"])
def test_rare_words_are_left_out_and_the_trees_are_the_same(kind, weights, leaf, monkeypatch):
    """LightGBM alone has all columns."""
    table = Table()
    words = np.random.default_rng(1).zipf(1.4, 400) % 300
    matrix = np.hstack([table.matrix, np.eye(300, dtype=np.float32)[words]])
    given = []
    real = boosting_module.without_rare_values
    monkeypatch.setattr(
        boosting_module, "without_rare_values", lambda *args: given.append(real(*args)) or given[0]
    )
    head, labels, scale = {
        "regression": (est.RegressionHead(), table.score, 2.0),
        "binary": (est.BinaryClassHead(), table.labels, 1.0),
        "multiclass": (est.MultiClassHead(3), table.three_classes, 1.0),
    }[kind]
    labels = labels.astype(np.float32)
    smallest = {"min_node_weight": 2 * scale / 400}
    if leaf == "min_data_in_leaf":
        smallest = {"min_node_examples": 8}
    settings = BoostingSettings(1, n_trees=5, max_depth=3, **smallest)
    data = TrainingData(sparse.csr_matrix(matrix), weights, None)
    dimension = head.logits_dimension
    objective = head_objective(head, labels)
    grown = Boosting(settings, objective, data, labels, None, new_state(dimension))
    grown.advance(15)
    assert 0 < len(np.unique(given[0].indices)) < 0.6 * 305
    smallest_of_library = {leaf: 2 if leaf == "min_sum_hessian_in_leaf" else 8}
    model = library_model(data.matrix, labels, 5, weights, **objective.parameters, **smallest_of_library)
    found, expected = grown.state().forest, forest_from_text(model.model_to_string())
    np.testing.assert_array_equal(found.feature, expected.feature)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
