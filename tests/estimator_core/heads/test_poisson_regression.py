import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.heads.fresh_graph import run

LOGITS = np.array([[0.0], [np.log(2.0)]], np.float32)  # expected counts 1 and 2
LABELS = np.array([[1.0], [3.0]], np.float32)


@pytest.mark.parametrize(
    ("settings", "expected"),
    # 1 - 1 * 0 and 2 - 3 * log(2) = -0.079442. Stirling for 3: 3 log(3) - 3 + 0.5 log(2 pi 3) = 1.764082.
    [({"compute_full_loss": False}, (1.0 - 0.079442) / 2), ({}, (1.0 - 0.079442 + 1.764082) / 2)],
)
def test_loss_with_and_without_the_constant_term(settings, expected):
    head = est.PoissonRegressionHead(**settings)
    assert run(lambda: head.loss(LABELS, LOGITS)) == pytest.approx(expected, rel=1e-5)


def test_integer_labels_of_two_numbers_with_weights():
    settings = {"weight_column": "w", "loss_reduction": "sum", "compute_full_loss": False}
    head = est.PoissonRegressionHead(label_dimension=2, **settings)
    features = {"w": np.array([3.0], np.float32)}
    logits = LOGITS.reshape(1, 2)
    # 3 * (1 + 2 - 3 log(2))
    expected = 3 * (1.0 - 0.079442)
    found = run(lambda: head.loss(np.array([[1, 3]]), logits, features))
    assert found == pytest.approx(expected, rel=1e-5)


def test_predictions_are_expected_counts():
    found = run(lambda: est.PoissonRegressionHead().predictions(tf.constant(LOGITS)))
    np.testing.assert_allclose(found["predictions"], [[1.0], [2.0]], rtol=1e-6)
    np.testing.assert_array_equal(found["logits"], LOGITS)


def test_label_dimension_and_labels_are_positive():
    assert est.PoissonRegressionHead(label_dimension=4).logits_dimension == 4
    with pytest.raises(ValueError, match="label_dimension"):
        est.PoissonRegressionHead(label_dimension=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="0 or more"):
        run(lambda: est.PoissonRegressionHead().loss([[0.0], [-1.0]], LOGITS))
