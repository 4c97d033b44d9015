"""A whole program with the calls that boosted trees had in TensorFlow 2.10, beside LightGBM."""

import numpy as np
import pytest
from sklearn import metrics

from tests.estimator_core.tree_programs import library_model


@pytest.mark.more
def test_the_guide_on_boosted_trees_gives_its_results(run_program, capsys):
    names = run_program("boosted_trees")
    found = names["metrics"]
    # 16 trees of 6 layers, and the first 4 layers of another.
    assert found["global_step"] == 100
    assert found["auc"] > names["linear_metrics"]["accuracy_baseline"]
    assert names["understood_metrics"]["global_step"] == 100
    # It is females, then those with a better place on board, who survive.
    assert next(iter(names["importances"])) == "sex"
    assert set(names["importances"]) == {"sex", "age", "family", "fare", "class", "alone"}
    assert names["bias"] == pytest.approx(names["y_train"].mean(), abs=1e-6)
    assert names["regression"]["global_step"] == 150
    fares = names["dfeval"]["fare"]
    assert names["regression"]["average_loss"] < 0.5 * fares.var()
    assert "accuracy" in capsys.readouterr().out
    _check_beside_the_library(names)


def _check_beside_the_library(names):
    """The program's explained model has the metrics that LightGBM has by itself."""
    train, evaluation = (_matrix(names, names[table]) for table in ("dftrain", "dfeval"))
    # 33 trees of 3 layers, and one of 1.
    library = library_model(train, names["y_train"], 33, boost_from_average=True)
    rest = library_model(train, names["y_train"], 34, boost_from_average=True)
    last = rest.predict(evaluation, raw_score=True) - library.predict(evaluation, raw_score=True)
    probabilities = library.predict(evaluation)
    found = names["understood_metrics"]
    labels = names["y_eval"]
    assert np.abs(last).max() < 0.3  # the largest change by a whole last tree
    assert names["explained_probs"].values == pytest.approx(probabilities, abs=0.05)
    accuracy = metrics.accuracy_score(labels, probabilities > 0.5)
    assert found["accuracy"] == pytest.approx(accuracy, abs=0.02)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(labels, probabilities), abs=0.01)


def _matrix(names, table):
    """The table as the program's columns make it, by their names."""
    parts = {}
    for column in names["CATEGORICAL_COLUMNS"]:
        words = names["dftrain"][column].unique()
        parts[f"{column}_indicator"] = np.stack([table[column] == word for word in words], axis=1)
    for column in names["NUMERIC_COLUMNS"]:
        parts[column] = table[column].to_numpy()[:, np.newaxis]
    return np.concatenate([parts[name] for name in sorted(parts)], axis=1).astype(np.float32)
