import numpy as np
import pytest
import sklearn.metrics

from components.evaluator.gate.intervals import wilson_interval
from components.evaluator.report_details.plot_points import MAX_POINTS, plot_points
from components.evaluator.report_details.prediction_sums import PredictionSums


def points(labels, predictions, kind, classes=(), weights=None):
    labels = np.asarray(labels)
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    sums = PredictionSums.from_batch(labels, np.asarray(predictions, float), weights, kind)
    return plot_points(sums, classes)


def test_curves_by_hand():
    """Four examples: 0.9 is 1, 0.8 is 0, 0.7 is 1, 0.2 is 0.

    From the top: (0, 1/2), (1/2, 1/2), (1/2, 1), (1, 1); precision 1, 1/2, 2/3, 1/2.
    """
    found = points([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.2], "binary")
    corners = list(dict.fromkeys((x, y) for x, y, _ in found["roc"]))
    assert corners == [(0, 0), (0, 0.5), (0.5, 0.5), (0.5, 1), (1, 1)]
    pairs = list(dict.fromkeys((x, y) for x, y, _ in found["precision_recall"]))
    assert pairs == [(0.5, 1), (0.5, 0.5), (1, pytest.approx(2 / 3)), (1, 0.5)]
    right, wrong = {"true_positives": 2, "true_negatives": 1}, {"false_positives": 1, "false_negatives": 0}
    assert found["confusion"] == {"threshold": 0.5, **right, **wrong}
    assert sum(found["histogram"][1]) == 2
    one_class = points([1, 1], [0.9, 0.8], "binary")
    assert "roc" not in one_class
    assert one_class["calibration"]
    assert plot_points(PredictionSums()) == {}  # nothing to draw


def test_a_curve_of_few_points_has_the_area_of_all():
    draw = np.random.default_rng(3)
    labels = draw.integers(0, 2, 5_000)
    scores = np.clip(0.3 * labels + 0.7 * draw.random(5_000), 0, 1)
    found = points(labels, scores, "binary")
    roc = np.array(found["roc"])
    assert len(roc) <= MAX_POINTS + 2
    expected = sklearn.metrics.roc_auc_score(labels, scores)
    assert np.trapezoid(roc[:, 1], roc[:, 0]) == pytest.approx(expected, abs=0.002)


def test_calibration_in_tenths():
    """Twenty examples: two in each tenth; of those at 0.05, 0.15, ... one of two is 1."""
    scores = np.repeat((np.arange(10) + 0.5) / 10, 2)
    rows = points(np.tile([0, 1], 10), scores, "binary")["calibration"]
    assert [row["weight"] for row in rows] == [2] * 10
    assert [row["happened"] for row in rows] == [0.5] * 10
    assert [row["predicted"] for row in rows] == pytest.approx(scores[::2], abs=1e-4)
    assert (rows[0]["low"], rows[0]["high"]) == pytest.approx(wilson_interval(1, 2, 0.95))


@pytest.mark.parametrize("kind", ["binary", "multi-class"])
@pytest.mark.parametrize("scale", [1.0, 1_000.0])
def test_weights_of_1_and_3_widen_the_intervals_of_a_calibration(kind, scale):
    """Eight examples with a total weight of 16 are worth 16^2 / (4 * 1 + 4 * 9) = 6.4 (Kish)."""
    labels, weights = np.tile([0, 1], 4), np.repeat([1.0, 3.0], 4) * scale
    answers = np.full(8, 0.7) if kind == "binary" else np.tile([0.3, 0.7], (8, 1))
    (row,) = points(labels, answers, kind, weights=weights)["calibration"]
    assert row["happened"] == 0.5
    assert (row["low"], row["high"]) == pytest.approx(wilson_interval(3.2, 6.4, 0.95))


def test_confusion_has_names_and_rare_classes_are_one():
    answers = np.eye(3)[[0, 1, 1, 2]]
    found = points([0, 0, 1, 2], answers, "multi-class", ("x", "y", "z"), [1, 2, 3, 4])
    table = [[1, 2, 0], [0, 3, 0], [0, 0, 4]]
    assert found["confusion"] == {"classes": ["x", "y", "z"], "table": table, "has_others": False}
    shares = [tuple(row.values()) for row in found["by_class"]]  # rows, precision, recall, F1
    assert shares == [("x", 3, 1, 1 / 3, 0.5), ("y", 3, 0.6, 1, 0.75), ("z", 4, 1, 1, 1)]
    found = points([0, 0], [[0, 1.0, 0], [1, 0, 0]], "multi-class")
    assert [tuple(row.values()) for row in found["by_class"]] == [
        ("0", 2, 1, 0.5, pytest.approx(2 / 3)),
        ("1", 0, 0, None, 0),  # no row is of this class; class 2 does not occur at all
    ]
    labels = np.repeat(np.arange(40), 2)
    labels[-1] = 0  # class 39 is the rarest, with one
    found = points(labels, np.eye(40)[labels], "multi-class")["confusion"]
    assert len(found["table"]) == len(found["classes"]) == 31
    assert found["classes"][-1] == "10 other classes"
    assert np.sum(found["table"]) == 80
    assert found["has_others"]


def test_how_sure_a_model_of_classes_is():
    answers = [[0.62, 0.38], [0.62, 0.38], [0.1, 0.9]]
    rows = points([0, 1, 1], answers, "multi-class")["calibration"]
    assert [row["predicted"] for row in rows] == pytest.approx([0.62, 0.9])
    assert [row["happened"] for row in rows] == [0.5, 1]


def test_plot_points_of_a_regression_hold_its_residuals():
    labels = np.arange(100.0)
    found = points(labels, labels + np.tile([1.0, -1.0], 50) + 0.5, "regression")
    assert found["sample_size"] == 100
    assert sum(found["residuals"]["counts"]) == 100
    assert found["residual_quantiles"]["5 %"] == pytest.approx(-0.5)
    assert found["residual_quantiles"]["95 %"] == pytest.approx(1.5)
    assert all(round(predicted - label, 3) in (1.5, -0.5) for label, predicted in found["pairs"])
