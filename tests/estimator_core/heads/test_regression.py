import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.heads.fresh_graph import evaluated, run

LOGITS = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], np.float32)
LABELS = np.array([[1.0, 2.0], [0.0, 1.0], [0.0, 4.0]], np.float32)
# Squared errors: [1, 1], [4, 4], [16, 1].


PLAIN = np.array([1.0, 2.0, 0.5], np.float32)
BY_DIMENSION = tf.feature_column.numeric_column("w", shape=(2,))
TENTH = {"weight_column": tf.feature_column.numeric_column("w", normalizer_fn=lambda w: w / 10.0)}


@pytest.mark.parametrize(
    ("settings", "weights", "expected"),
    [
        ({}, PLAIN, 27 / 6),  # (1 + 1 + 4 + 4 + 16 + 1) / 6
        ({"weight_column": "w"}, PLAIN, 26.5 / 6),  # 1 * 2 + 2 * 8 + 0.5 * 17
        ({"weight_column": BY_DIMENSION}, np.array([[1, 2]] * 3, np.int32), (1 + 2 + 4 + 8 + 16 + 2) / 6),
        ({**TENTH, "loss_reduction": "sum"}, np.array([10.0, 0, 0], "f"), 2.0),
        ({"loss_fn": lambda labels, logits: tf.abs(labels - logits)}, PLAIN, (1 + 1 + 2 + 2 + 4 + 1) / 6),
        ({"inverse_link_fn": tf.exp}, PLAIN, 27 / 6),  # for predictions only
    ],
    ids=["no weights", "examples", "dimensions", "normalized", "loss_fn", "inverse_link_fn"],
)
def test_loss_is_the_mean_over_all_numbers(settings, weights, expected):
    head = est.RegressionHead(2, **settings)
    assert run(lambda: head.loss(LABELS, LOGITS, {"w": weights})) == pytest.approx(expected)


def test_flat_integer_labels():
    head = est.RegressionHead()
    # (1 - 0.5)^2 and (0 + 1)^2
    assert run(lambda: head.loss([1, 0], [[0.5], [-1.0]])) == pytest.approx(1.25 / 2)


def test_predictions_are_the_logits():
    found = run(lambda: est.RegressionHead(2).predictions(tf.constant(LOGITS)))
    assert list(found) == ["predictions"]
    np.testing.assert_array_equal(found["predictions"], LOGITS)
    head = est.RegressionHead(2, inverse_link_fn=tf.exp)
    found = run(lambda: head.predictions(tf.constant(LOGITS)))
    np.testing.assert_allclose(found["predictions"], np.exp(LOGITS), rtol=1e-6)
    np.testing.assert_array_equal(found["logits"], LOGITS)


def test_metrics_are_weighted_means():
    found = evaluated(est.RegressionHead(2, weight_column="w"), LOGITS, LABELS, {"w": PLAIN})
    # Weights are 7 in total: (1 * 2 + 2 * 8 + 0.5 * 17) / 7, (1 + 2 * 5 + 0.5 * 9) / 7,
    # (3 + 2 * 1 + 0.5 * 4) / 7.
    assert found == {
        "average_loss": pytest.approx(26.5 / 7),
        "prediction/mean": pytest.approx(15.5 / 7),
        "label/mean": pytest.approx(7 / 7),
    }


def test_export_outputs_are_regression_and_predict(graph):
    spec = est.RegressionHead(2).create_estimator_spec({}, "infer", tf.constant(LOGITS))
    assert set(spec.export_outputs) == {"serving_default", "regression", "predict"}
    assert spec.export_outputs["serving_default"] is spec.export_outputs["regression"]


def test_what_can_not_work():
    with pytest.raises(ValueError, match="label_dimension"):
        est.RegressionHead(0)
    with pytest.raises(ValueError, match="Expected labels dimension=2"):
        run(lambda: est.RegressionHead(2).loss([[1.0]] * 3, LOGITS))
    with pytest.raises(ValueError, match="must be numbers"):
        run(lambda: est.RegressionHead().loss(["a"], [[1.0]]))
    head = est.RegressionHead(2, loss_fn=lambda labels, logits: tf.reduce_mean(labels - logits))
    with pytest.raises(ValueError, match="no mean, no sum"):
        run(lambda: head.loss(LABELS, LOGITS))
