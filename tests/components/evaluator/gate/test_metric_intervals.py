import numpy as np
import pytest
from scipy import stats

from components.evaluator.gate.labelled_predictions import LabelledPredictions
from components.evaluator.gate.metric_intervals import metric_intervals


def given(labels, predictions, kind, weights=None):
    predictions = {"": np.asarray(predictions, float)}
    batch = LabelledPredictions.from_batch(np.asarray(labels), predictions, weights, kind)
    return batch, batch.answers[""]


def test_shares_are_wilsons():
    labels = [1] * 6 + [0] * 14
    scores = [0.9] * 4 + [0.1] * 2 + [0.8] * 3 + [0.2] * 11
    found = metric_intervals(*given(labels, scores, "binary"), 0.9, all_metrics=True)
    # Right are 4 + 11 of 20; of the 7 that are taken 4 are 1; of the 6 that are 1, 4 are taken.
    for name, right, total in (("binary_accuracy", 15, 20), ("precision", 4, 7), ("recall", 4, 6)):
        expected = stats.binomtest(right, total).proportion_ci(0.9, "wilson")
        assert found[name] == pytest.approx((expected.low, expected.high)), name
    names = "auc binary_crossentropy binary_accuracy precision recall mean_label mean_prediction"
    assert set(found) == set(names.split())


def test_which_metrics_have_an_interval():
    found = metric_intervals(*given([0, 0, 1], [0.1, 0.2, 0.3], "binary"), 0.95, all_metrics=True)
    assert "precision" not in found  # nothing is taken for 1
    found = metric_intervals(*given([0, 1, 1], np.eye(2)[[0, 1, 0]], "multi-class"), 0.95)
    assert set(found) == {"sparse_categorical_accuracy", "sparse_categorical_crossentropy"}


def test_weights_count_as_examples():
    """Two examples of weight 2 hold as much information as two of weight 1."""
    one, two = (
        metric_intervals(
            *given([0, 1, 1, 0], [0.2, 0.9, 0.3, 0.1], "binary", weights), 0.95, all_metrics=True
        )
        for weights in (None, np.full(4, 2.0))
    )
    assert one["binary_accuracy"] == pytest.approx(two["binary_accuracy"])


def test_regression_by_students_distribution():
    """Errors 1, 2, 3, 2: mean 2, sample variance 2/3; t of 3 degrees of freedom at 95 % is 3.18245."""
    found = metric_intervals(*given([0.0, 0, 0, 0], [1.0, -2, 3, 2], "regression"), 0.95, all_metrics=True)
    reach = 3.182446 * (2 / 3 / 4) ** 0.5
    assert found["mean_absolute_error"] == pytest.approx((2 - reach, 2 + reach), rel=1e-5)
    assert "root_mean_squared_error" in found
