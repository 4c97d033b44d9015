import numpy as np
import pytest

from estimator_core.boosted_trees.boosting import BoostingState
from estimator_core.boosted_trees.columns import ColumnRange
from estimator_core.boosted_trees.explanations import Explainer, feature_importances, sigmoid
from estimator_core.boosted_trees.model_text import forest_from_text
from tests.estimator_core.tree_programs import Table, library_model

COLUMNS = [ColumnRange("a", 1), ColumnRange("b", 1), ColumnRange("word", 3)]

# Column 1 at most 0.5: -1. Else column 0 at most 1.5 (or missing): 0.25, or 2.
TEXT = (
    "\nTree=0\nnum_leaves=3\nsplit_feature=1 0\nsplit_gain=5 2\n"
    "threshold=0.5 1.5\ndecision_type=8 10\nleft_child=-1 -2\nright_child=1 -3\n"
    "leaf_value=-1 0.25 2\nleaf_count=4 3 2\ninternal_value=0.3 0.95\ninternal_count=9 5\n"
)


def state(text, bias=0.0):
    return BoostingState(forest_from_text(text), np.array([bias]), 1, 0, 0)


def test_contributions_by_hand():
    columns = [ColumnRange("left", 1), ColumnRange("right", 1)]
    explainer = Explainer(state(TEXT, bias=0.5), columns, "paths", np.asarray)
    matrix = np.array([[9.0, 0.0], [9.0, 1.0], [np.nan, np.nan]], np.float32)
    (first, second, third) = explainer.explain(matrix)
    # A tree begins at 0 in its root, whatever the mean there is.
    assert first == (0.5, {"right": -1.0, "left": 0.0})
    assert second[1] == pytest.approx({"left": 2 - 0.95, "right": 0.95})
    assert list(second[1]) == ["left", "right"]  # the largest first
    assert third[1] == pytest.approx({"right": 0.95, "left": 0.25 - 0.95})


def test_contributions_to_a_probability():
    columns = [ColumnRange("left", 1), ColumnRange("right", 1)]
    text = TEXT + TEXT.replace("Tree=0", "Tree=1")
    ((bias, contributions),) = Explainer(state(text, 0.5), columns, "paths", sigmoid).explain(
        np.array([[9.0, 1.0]], np.float32)
    )
    share = sigmoid(np.array([0.5, 0.5 + 0.95, 2.5, 2.5 + 0.95, 4.5]))
    assert bias == pytest.approx(share[0])
    assert contributions["right"] == pytest.approx(share[1] - share[0] + share[3] - share[2])
    assert contributions["left"] == pytest.approx(share[2] - share[1] + share[4] - share[3])


def test_contributions_add_up():
    table = Table()
    model = library_model(table.matrix, table.labels, 10)
    built = state(model.model_to_string(), 0.3)
    logits = model.predict(table.matrix, raw_score=True) + 0.3
    for method, link in (("paths", sigmoid), ("paths", np.asarray), ("tree_shap", sigmoid)):
        explained = Explainer(built, COLUMNS, method, link).explain(table.matrix)
        sums = [bias + sum(contributions.values()) for bias, contributions in explained]
        expected = sigmoid(logits) if (method, link) == ("paths", sigmoid) else logits
        np.testing.assert_allclose(sums, expected, atol=1e-12)


def test_tree_shap_is_that_of_the_library():
    table = Table()
    model = library_model(table.matrix, table.labels, 10)
    found = Explainer(state(model.model_to_string()), COLUMNS, "tree_shap", sigmoid)
    expected = model.predict(table.matrix, pred_contrib=True)
    for (bias, contributions), row in zip(found.explain(table.matrix), expected, strict=True):
        assert bias == pytest.approx(row[-1])
        assert contributions["b"] == pytest.approx(row[1])
        assert contributions["word"] == pytest.approx(row[2:5].sum())


def test_importances_are_the_gains_of_the_library():
    table = Table()
    model = library_model(table.matrix, table.labels, 10)
    forest = forest_from_text(model.model_to_string())
    gains = model.feature_importance("gain")
    found = feature_importances(forest, COLUMNS)
    assert found == pytest.approx({"a": gains[0], "b": gains[1], "word": gains[2:].sum()}, rel=1e-5)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    shares = feature_importances(forest, COLUMNS, normalize=True)
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares) == list(found)


def test_a_forest_without_a_split_has_no_importances():
    forest = forest_from_text("\nTree=0\nnum_leaves=1\nleaf_value=1\n")
    assert feature_importances(forest, COLUMNS, normalize=True) == {"a": 0, "b": 0, "word": 0}


def test_what_is_not_explained():
    with pytest.raises(ValueError, match="Received: method='shap'"):
        Explainer(state(TEXT), COLUMNS, "shap", sigmoid)
    three = state(TEXT)._replace(bias=np.zeros(3))
    with pytest.raises(ValueError, match="Received: 3 logits"):
        Explainer(three, COLUMNS, "paths", sigmoid)
