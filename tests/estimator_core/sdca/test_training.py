import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.canned.compose import ModelPart, compose
from estimator_core.experimental import LinearSDCA
from estimator_core.logits import linear_logit_fn_builder
from estimator_core.sdca.training import SdcaTraining

fc = tf.feature_column
SDCA = LinearSDCA("id", symmetric_l2_regularization=2.0)


def model_of(head, columns):
    """The model_fn of a linear model that SDCA trains."""
    logit_fn = linear_logit_fn_builder(head.logits_dimension, columns)
    training = SdcaTraining(SDCA, head, columns, model_scope="linear")
    return compose(head, [ModelPart(logit_fn, None)], training)


def test_weighted_least_squares_of_a_bias(session):
    """Two examples without any column: the least of 1 (b - 6)^2 / 2 + 3 (b - 2)^2 / 2 + 2 b^2 / 2.

    The slope, b - 6 + 3 b - 6 + 2 b, is 0 where b = 2.
    """
    model_fn = model_of(est.RegressionHead(weight_column="weight"), [fc.numeric_column("zero")])
    step = tf1.train.create_global_step()
    features = {
        "id": tf.constant([["a"], ["b"]]),
        "zero": tf.zeros([2]),
        "weight": tf.constant([1.0, 3.0]),
    }
    spec = model_fn(features, tf.constant([6.0, 2.0]), "train")
    session.run(tf1.global_variables_initializer())
    # The mean of 1 * 36 and 3 * 4, from the bias 0.
    assert session.run(spec.loss) == pytest.approx(24.0)
    for _ in range(60):
        session.run(spec.train_op)
    bias = session.run(tf1.global_variables("linear/linear_model/bias_weights")[0])
    assert bias.item() == pytest.approx(2.0, rel=1e-3)
    assert session.run(step) == 60
    np.testing.assert_allclose(session.run(spec.predictions["predictions"]), [[2], [2]], rtol=1e-3)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        (lambda x: {"x": x}, KeyError, "needs the feature 'id'"),
        (lambda x: {"x": x, "id": tf.constant([7])}, TypeError, "must hold strings"),
        (lambda x: x, ValueError, "should be a dictionary"),
    ],
)
def test_only_training_needs_the_ids_of_examples(features, error, message):
    model_fn = model_of(est.RegressionHead(), [fc.numeric_column("x")])
    with tf.Graph().as_default():
        assert model_fn({"x": tf.constant([1.0])}, None, "infer").predictions
    with tf.Graph().as_default(), pytest.raises(error, match=message):
        model_fn(features(tf.constant([1.0])), tf.constant([1.0]), "train")
