import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.heads.fresh_graph import run

LOGITS = np.array([[0.0], [np.log(3.0)]], np.float32)  # probabilities 1/2 and 3/4


def test_loss_of_labels_between_0_and_1_with_weights_and_sum():
    head = est.LogisticRegressionHead()
    # -log(1/2), whatever the label is; -0.8 log(3/4) - 0.2 log(1/4) = 0.230146 + 0.277259
    expected = (0.693147 + 0.507405) / 2
    assert run(lambda: head.loss([[0.3], [0.8]], LOGITS)) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in range \[0, 1\]"):
        run(lambda: head.loss([[0.0], [1.5]], LOGITS))
    head = est.LogisticRegressionHead(weight_column="w", loss_reduction="sum")
    features = {"w": np.array([2.0, 10.0], np.float32)}
    # 2 log 2 - 10 log(3/4)
    expected = 2 * 0.693147 + 10 * 0.287682
    assert run(lambda: head.loss([0, 1], LOGITS, features)) == pytest.approx(expected, rel=1e-5)


def test_predictions_are_probabilities_and_metrics_have_the_name_of_the_head():
    found = run(lambda: est.LogisticRegressionHead().predictions(tf.constant(LOGITS)))
    np.testing.assert_allclose(found["predictions"], [[0.5], [0.75]], rtol=1e-6)
    np.testing.assert_array_equal(found["logits"], LOGITS)
    keys = set(est.LogisticRegressionHead(name="ctr").metrics())
    assert keys == {"average_loss/ctr", "prediction/mean/ctr", "label/mean/ctr"}
