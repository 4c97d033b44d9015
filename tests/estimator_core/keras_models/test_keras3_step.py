import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.keras_in_graph.side_effects import collected_side_effects
from estimator_core.keras_models import keras3_step

_X = np.float32([[1.0], [3.0]])
_Y = np.float32([[0.0], [0.0]])


def _linear(**compile_args):
    """y = 2 x, of the current graph, with a regularizer that adds 0.1 * 2^2."""
    two, penalty = keras.initializers.Constant(2.0), keras.regularizers.L2(0.1)
    layer = keras.layers.Dense(
        1, use_bias=False, kernel_initializer=two, kernel_regularizer=penalty, name="dense"
    )
    model = keras.Sequential([keras.Input((1,)), layer])
    model.compile(keras.optimizers.SGD(0.01), "mse", **compile_args)
    return model


def _run(build):
    with tf.Graph().as_default(), collected_side_effects():
        tf1.train.get_or_create_global_step()
        fetches, after = build()
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            return session.run(fetches), session.run(after)


def test_a_training_step_by_hand():
    def build():
        model = _linear()
        arguments = tf.constant(_X), tf.constant(_Y), None
        _, loss, train_op = keras3_step.train(model, model.optimizer, *arguments)
        return (loss, train_op), (model.variables[0].value, tf1.train.get_global_step())

    (loss, _), (kernel, step) = _run(build)
    # Outputs 2 and 6: their squares 4 and 36, the mean 20, and 0.4 of regularization.
    assert loss == pytest.approx(20.4, rel=1e-6)
    # The slope: mean of 2 * 2 * 1 and 2 * 6 * 3, 20, and 2 * 0.1 * 2 of regularization.
    np.testing.assert_allclose(kernel, [[2.0 - 0.01 * 20.4]], rtol=1e-6)
    assert step == 1


def test_sample_weights_weigh_the_loss():
    def build():
        model = _linear()
        weights = tf.constant([1.0, 0.5])
        _, loss, _ = keras3_step.train(model, model.optimizer, tf.constant(_X), tf.constant(_Y), weights)
        return loss, ()

    # (4 * 1 + 36 * 0.5) / 2 + 0.4
    assert _run(build)[0] == pytest.approx(11.4, rel=1e-6)


def test_an_evaluation_has_the_metrics_but_not_the_trackers_of_losses():
    def build():
        model = _linear(metrics=[keras.metrics.MeanAbsoluteError(name="error")])
        arguments = tf.constant(_X), tf.constant(_Y), None
        _, loss, metrics = keras3_step.evaluate(model, *arguments)
        assert list(metrics) == ["error"]
        value, update = metrics["error"]
        return (loss, update), value

    (loss, _), error = _run(build)
    assert loss == pytest.approx(20.4, rel=1e-6)
    assert error == pytest.approx((2.0 + 6.0) / 2)


def test_predictions_change_no_statistics():
    def build():
        norm = keras.layers.BatchNormalization(epsilon=0.0, name="norm")
        model = keras.Sequential([keras.Input((1,)), norm])
        # Means of 0 and variances of 1 leave inputs as they are.
        return keras3_step.predict(model, tf.constant(_X)), norm.moving_mean.value

    outputs, mean = _run(build)
    np.testing.assert_allclose(outputs, _X)
    assert mean.tolist() == [0.0]


def test_a_model_with_nothing_to_train_is_refused():
    def build():
        model = _linear()
        model.trainable = False
        return keras3_step.train(model, model.optimizer, tf.constant(_X), tf.constant(_Y), None)

    with pytest.raises(ValueError, match="no trainable variables"):
        _run(build)
