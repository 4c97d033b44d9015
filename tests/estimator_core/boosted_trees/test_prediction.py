import lightgbm
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.boosted_trees.boosting import BoostingState
from estimator_core.boosted_trees.forest import concatenated, constant_trees
from estimator_core.boosted_trees.forest_variables import ForestAssignment, ForestVariables
from estimator_core.boosted_trees.model_text import forest_from_text, text_from_forest
from estimator_core.boosted_trees.prediction import forest_logits
from tests.estimator_core.tree_programs import Table, library_model


def logits_of(forest, bias, matrix):
    with tf.Graph().as_default(), tf1.Session() as session:
        variables = ForestVariables(len(bias))
        values = tf1.placeholder(tf.float32, [None, matrix.shape[1]])
        logits = forest_logits(values, variables, len(bias))
        session.run(tf1.global_variables_initializer())
        ForestAssignment(variables).run(session, BoostingState(forest, bias, 0, 0, 0))
        return session.run(logits, {values: matrix})


@pytest.mark.parametrize("has_missing", [True, False], ids=["missing", "nothing missing"])
def test_logits_are_those_of_the_library(has_missing):
    """Trees that saw missing values, and trees that saw none and are asked about some."""
    table = Table(rows=3000)
    matrix = table.matrix if has_missing else np.nan_to_num(table.matrix, nan=0.5)
    model = library_model(matrix, table.labels, 12, max_depth=5, num_leaves=32)
    unseen = Table(rows=2500, seed=1).matrix  # in three blocks
    assert np.isnan(unseen).any()
    unseen[:4, 0] = [np.inf, -np.inf, 0.0, -0.0]
    found = logits_of(forest_from_text(model.model_to_string()), np.zeros(1), unseen)
    np.testing.assert_allclose(found[:, 0], model.predict(unseen, raw_score=True), atol=1e-6)


def test_a_split_between_missing_and_not_missing():
    matrix = np.zeros((40, 2), np.float32)
    matrix[:, 0] = np.arange(40)
    matrix[::2, 1] = np.nan
    model = library_model(matrix, np.arange(40) % 2, 2)
    forest = forest_from_text(model.model_to_string())
    matrix[0, 1] = -np.inf
    matrix[2, 1] = np.inf
    found = logits_of(forest, np.zeros(1), matrix)
    np.testing.assert_allclose(found[:, 0], model.predict(matrix, raw_score=True), atol=1e-6)
    # A number, whichever, is not missing.
    is_missing = np.isnan(matrix[:, 1])
    assert (found[is_missing] < 0).all()
    assert (found[~is_missing] > 0).all()


def test_a_value_goes_to_the_left_of_its_own_threshold_only():
    """A threshold between two float32 numbers, and one that is no float32 number."""
    table = Table()
    forest = forest_from_text(library_model(table.matrix, table.labels, 8).model_to_string())
    inner = np.flatnonzero(~forest.is_leaf)
    rows = np.zeros((3 * len(inner), 5), np.float32)
    for index, node in enumerate(inner):
        near = np.float32(forest.threshold[node])
        around = [np.nextafter(near, np.float32(side)) for side in (-np.inf, np.inf)]
        rows[3 * index : 3 * index + 3, forest.feature[node]] = [near, *around]
    library = lightgbm.Booster(model_str=text_from_forest(forest, 5, 1))
    found = logits_of(forest, np.zeros(1), rows)
    np.testing.assert_allclose(found[:, 0], library.predict(rows), atol=1e-6)


def test_several_logits_and_a_bias():
    table = Table()
    model = library_model(table.matrix, table.three_classes, 4, objective="multiclass", num_class=3)
    bias = np.array([0.5, -1.0, 2.0])
    found = logits_of(forest_from_text(model.model_to_string()), bias, table.matrix)
    np.testing.assert_allclose(found, model.predict(table.matrix, raw_score=True) + bias, atol=1e-6)


def test_no_tree_no_row_and_trees_of_one_leaf():
    rows = np.ones((3, 5), np.float32)
    nothing = concatenated([])
    bias = np.array([0.25, 0.5])
    assert logits_of(nothing, bias, rows).tolist() == [[0.25, 0.5]] * 3
    assert logits_of(constant_trees(4), bias, rows).tolist() == [[0.25, 0.5]] * 3
    assert logits_of(constant_trees(4), bias, rows[:0]).shape == (0, 2)


def test_a_block_of_rows_does_not_copy_the_sums_of_the_blocks_before():
    """The loop of the blocks has no tensor `[rows, logits_dimension]`: its copies grow with the square."""
    with tf.Graph().as_default() as graph:
        forest_logits(tf1.placeholder(tf.float32, [None, 5]), ForestVariables(3), 3)
    (loop,) = [one for one in graph.get_operations() if one.type in ("While", "StatelessWhile")]
    shapes = [output.shape.as_list() for output in loop.outputs if output.dtype == tf.float64]
    assert [None, 3] not in shapes
    assert [None] in shapes  # the values of the nodes
