import lightgbm
import numpy as np
import pytest

from estimator_core.boosted_trees.model_text import forest_from_text, text_from_forest
from tests.estimator_core.tree_programs import Table, library_model


@pytest.mark.parametrize("classes", [1, 3])
def test_the_text_of_a_forest_predicts_and_explains_as_the_model_that_it_came_from(classes):
    table = Table()
    kind = {"objective": "multiclass", "num_class": 3} if classes == 3 else {}
    labels = table.three_classes if classes == 3 else table.labels
    model = library_model(table.matrix, labels, 6, **kind)
    forest = forest_from_text(model.model_to_string())
    assert forest.num_trees == 6 * classes
    again = lightgbm.Booster(model_str=text_from_forest(forest, 5, classes))
    unseen = Table(seed=1).matrix
    np.testing.assert_array_equal(
        again.predict(unseen, raw_score=True), model.predict(unseen, raw_score=True)
    )
    np.testing.assert_allclose(
        again.predict(unseen, pred_contrib=True), model.predict(unseen, pred_contrib=True), atol=1e-14
    )


def test_hand_made_text():
    """Two splits; the second one saw no missing value, which counts as 0 and so goes to the left."""
    text = (
        "tree\n\nTree=0\nnum_leaves=3\nnum_cat=0\nsplit_feature=1 0\nsplit_gain=5 2\n"
        "threshold=0.5 1.5\ndecision_type=8 2\nleft_child=-1 -2\nright_child=1 -3\n"
        "leaf_value=-1 0.25 2\nleaf_count=4 3 2\ninternal_value=0 0.95\ninternal_count=9 5\n"
        "is_linear=0\nshrinkage=1\n\n\nTree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=0.5\n\n\n"
        "end of trees\n\nfeature_importances:\nTree=2\nnum_leaves=9\n"
    )
    forest = forest_from_text(text)
    assert forest.feature.tolist() == [1, 0, 0, 0, 0, 0]
    assert forest.value.tolist() == [0, -1, 0.95, 0.25, 2, 0.5]
    assert forest.left.tolist() == [1, 1, 3, 3, 4, 5]
    assert forest.depth.tolist() == [0, 1, 1, 2, 2, 0]
    assert forest.count.tolist() == [9, 4, 5, 3, 2, 0]
    assert forest.root.tolist() == [0, 5]
    assert forest.nan_is_left.tolist() == [False, True, True, True, True, True]
    assert forest.nan_is_zero.tolist() == [False, False, True, False, False, False]


def test_a_text_without_trees_is_an_empty_forest():
    assert forest_from_text("tree\n\nend of trees\n").num_trees == 0
