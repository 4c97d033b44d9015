"""Importances of feature columns in a forest, and their contributions to predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimator_core.boosted_trees.boosting import BoostingState
from estimator_core.boosted_trees.columns import ColumnRange
from estimator_core.boosted_trees.forest import Forest
from estimator_core.boosted_trees.library import lightgbm
from estimator_core.boosted_trees.model_text import text_from_forest

METHODS = ("paths", "tree_shap")


def feature_importances(
    forest: Forest, columns: Sequence[ColumnRange], normalize: bool = False
) -> dict[str, float]:
    """Returns the total gain of each feature column's splits, the largest first."""
    groups = _Groups(columns)
    is_inner = ~forest.is_leaf
    sums = np.bincount(
        groups.of_columns[forest.feature[is_inner]],
        weights=forest.gain[is_inner],
        minlength=len(groups.names),
    )
    total = sums.sum()
    if normalize and total > 0:
        sums = sums / total
    return _largest_first(groups.names, sums)


def sigmoid(logits: Any) -> Any:
    """Returns the probabilities of logits, float64."""
    return 0.5 * (1.0 + np.tanh(0.5 * logits))


class Explainer:
    """Computes the contribution of each feature column to a prediction.

    "paths" follows an example through the trees, one after the other, and credits the change of the
    prediction at each step down to the column of the split. "tree_shap" is TreeSHAP, of logits.

    Source: "paths": A. Saabas, "Interpreting random forests", and arXiv:1312.1121, as in tf.estimator's
    boosted trees: an example starts from the bias in each tree. "tree_shap": arXiv:1802.03888.
    """

    def __init__(
        self, state: BoostingState, columns: Sequence[ColumnRange], method: str, link: Callable[[Any], Any]
    ):
        if method not in METHODS:
            raise ValueError(f"method must be one of {METHODS}. Received: method={method!r}")
        if len(state.bias) != 1:
            raise ValueError(
                "Predictions can only be explained for models with one logit: two classes, or one number. "
                f"Received: {len(state.bias)} logits"
            )
        self._forest = state.forest
        self._bias = float(state.bias[0])
        self._groups = _Groups(columns)
        self._method = method
        self._link = link

    def explain(self, matrix: Any) -> list[tuple[float, dict[str, float]]]:
        """Returns (bias, contribution by column, largest first) of each row; they sum to the prediction."""
        by_shap = self._method == "tree_shap"
        bias, contributions = self._shap(matrix) if by_shap else self._paths(matrix)
        names = self._groups.names
        return [(bias, _largest_first(names, np.asarray(row))) for row in contributions]

    def _shap(self, matrix: Any) -> tuple[float, Any]:
        model_text = text_from_forest(self._forest, matrix.shape[1], 1)
        shap_values = lightgbm().Booster(model_str=model_text).predict(matrix, pred_contrib=True)
        bias = self._bias + (float(shap_values[0, -1]) if len(shap_values) else 0.0)
        return bias, shap_values[:, :-1] @ self._groups.membership()

    def _paths(self, matrix: Any) -> tuple[float, Any]:
        forest, rows = self._forest, np.arange(len(matrix))
        logits = np.full(len(matrix), self._bias)
        previous = self._link(logits)
        contributions = np.zeros((len(matrix), len(self._groups.names)))
        is_leaf = forest.is_leaf
        for root in forest.root:
            at = np.full(len(matrix), root)
            so_far = np.zeros(len(matrix))  # the current tree's value at the node
            while not is_leaf[at].all():
                moves = ~is_leaf[at]
                feature = forest.feature[at]
                values = matrix[rows, feature]
                is_left = np.where(np.isnan(values), forest.nan_is_left[at], values <= forest.threshold[at])
                at = forest.left[at] + ~is_left  # a leaf stays
                value = np.where(moves, forest.value[at], so_far)
                logits, so_far = logits + (value - so_far), value
                after = self._link(logits)
                contributions[rows, self._groups.of_columns[feature]] += after - previous
                previous = after
        return float(self._link(np.float64(self._bias))), contributions


class _Groups:
    """Groups of matrix columns that share a feature column's name."""

    def __init__(self, columns: Sequence[ColumnRange]):
        self.names = list(dict.fromkeys(column.name for column in columns))
        index = [self.names.index(column.name) for column in columns]
        self.of_columns: Any = np.repeat(index, [column.size for column in columns])

    def membership(self) -> Any:
        """Returns `[columns of the matrix, names]`: 1 where a column belongs to a name."""
        return (self.of_columns[:, np.newaxis] == np.arange(len(self.names))).astype(np.float64)


def _largest_first(names: Sequence[str], values: Any) -> dict[str, float]:
    order = np.argsort(-np.abs(values), kind="stable")
    return {names[index]: float(values[index]) for index in order}
