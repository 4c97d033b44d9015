import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.optimizers.minimize import minimize
from tests.estimator_core.keras_in_graph.dense import KERNEL, X, Y, dense, eager_kernel, input_fn
from tests.estimator_core.programs import counting


def _model_fn(make_optimizer, use_returned_op):
    def model_fn(features, labels, mode):
        layer, optimizer = dense(), make_optimizer()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(features["x"]) - labels))
        gradients = tape.gradient(loss, layer.trainable_variables)
        update = optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
        # A learning rate may read the global step, so it is counted after the update.
        with tf.control_dependencies([update] if use_returned_op else []):
            return counting(mode, loss)

    return model_fn


_OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.1),
    "clipped": lambda: keras.optimizers.RMSprop(0.1, clipnorm=0.5),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("use_returned_op", [True, False])
@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_keras_optimizers_train_as_they_do_eagerly(tmp_path, name, use_returned_op):
    model_fn = _model_fn(_OPTIMIZERS[name], use_returned_op)
    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=3)
    estimator.train(input_fn, steps=2)  # slots and step count come from the checkpoint
    (kernel,) = (n for n in estimator.get_variable_names() if n.endswith("dense/kernel"))
    np.testing.assert_allclose(
        estimator.get_variable_value(kernel), eager_kernel(_OPTIMIZERS[name], 5), rtol=1e-5
    )


def test_a_learning_rate_may_be_calculated_in_the_graph(tmp_path):
    def decayed():
        step = tf1.train.get_global_step()
        return keras.optimizers.Adam(tf1.train.exponential_decay(0.1, step, 2, 0.5))

    estimator = est.Estimator(_model_fn(decayed, True), str(tmp_path)).train(input_fn, steps=5)
    expected = eager_kernel(_OPTIMIZERS["schedule"], 5)
    np.testing.assert_allclose(estimator.get_variable_value("dense/kernel"), expected, rtol=1e-5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("use_returned_op", [True, False])
def test_newer_optimizers_of_tf_keras_train_as_those_of_keras_do(tmp_path, use_returned_op):
    tf_keras = pytest.importorskip("tf_keras")
    make = {"tf_keras": lambda: tf_keras.optimizers.SGD(0.1), "keras": lambda: keras.optimizers.SGD(0.1)}
    kernels = []
    for name, make_optimizer in make.items():

        def model_fn(features, labels, mode, make_optimizer=make_optimizer):
            kernel = tf1.get_variable("kernel", initializer=KERNEL, use_resource=True)
            loss = tf.reduce_mean(tf.square(tf.matmul(features["x"], kernel) - labels))
            gradients = tf.gradients(loss, [kernel])
            update = make_optimizer().apply_gradients(zip(gradients, [kernel], strict=True))
            count = tf1.train.get_global_step().assign_add(1)
            train_op = tf.group(update, count) if use_returned_op else count
            return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

        estimator = est.Estimator(model_fn, str(tmp_path / name)).train(input_fn, steps=3)
        kernels.append(estimator.get_variable_value("kernel"))
    assert not np.allclose(kernels[0], KERNEL)
    np.testing.assert_allclose(*kernels, rtol=1e-6)


def _tf_keras_model(tf_keras):
    kernel = tf_keras.initializers.Constant(KERNEL)
    norm = tf_keras.layers.BatchNormalization(momentum=0.5, name="norm")
    return tf_keras.Sequential([norm, tf_keras.layers.Dense(1, kernel_initializer=kernel, name="dense")])


def _tf_keras_model_fn(tf_keras, make_optimizer, find_updates):
    def model_fn(features, labels, mode):
        model = _tf_keras_model(tf_keras)
        outputs = model(features["x"], training=mode == est.ModeKeys.TRAIN)
        if mode == est.ModeKeys.PREDICT:
            return est.EstimatorSpec(mode, predictions={"y": outputs})
        loss = tf.reduce_mean(tf.square(outputs - labels))
        if mode == est.ModeKeys.EVAL:
            metric = tf_keras.metrics.MeanAbsoluteError()
            metric.update_state(labels, outputs)
            return est.EstimatorSpec(mode, loss=loss, eval_metric_ops={"mae": metric})
        optimizer = make_optimizer()
        optimizer.iterations = tf1.train.get_or_create_global_step()
        (update,) = optimizer.get_updates(loss, model.trainable_variables)
        train_op = tf.group(update, *find_updates(model, features["x"]))
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.*updates:UserWarning")  # tf_keras', of the same subject
@pytest.mark.parametrize(
    "find_updates",
    [
        lambda model, inputs: model.updates,
        lambda model, inputs: model.get_updates_for(None) + model.get_updates_for(inputs),
        lambda model, inputs: model.get_layer("norm").updates,
    ],
)
def test_tf_keras_layers_and_get_updates_train_as_they_do_eagerly(tmp_path, find_updates):
    tf_keras = pytest.importorskip("tf_keras")

    def make_optimizer():
        schedule = tf_keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
        return tf_keras.optimizers.legacy.Adam(schedule)

    estimator = est.Estimator(_tf_keras_model_fn(tf_keras, make_optimizer, find_updates), tmp_path)
    estimator.train(input_fn, steps=3)
    estimator.train(input_fn, steps=2)  # slots and step count come from the checkpoint
    results = estimator.evaluate(input_fn, steps=3)
    predicted = next(estimator.predict(input_fn, yield_single_examples=False))["y"]

    model, optimizer = _tf_keras_model(tf_keras), make_optimizer()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(X, training=True) - Y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    expected = model(X).numpy()
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)
    assert results["global_step"] == 5
    assert results["mae"] == pytest.approx(np.abs(expected - Y).mean(), rel=1e-5)
    assert results["loss"] == pytest.approx(np.square(expected - Y).mean(), rel=1e-5)
    # The names of 2.15's Keras: nothing is counted on from other graphs.
    trained = [f"sequential/{name}" for name in ("norm/gamma", "norm/beta", "dense/kernel", "dense/bias")]
    assert set(estimator.get_variable_names()) == {
        "global_step",
        *trained,
        *(f"sequential/norm/moving_{name}" for name in ("mean", "variance")),
        *(f"Adam/{name}" for name in ("beta_1", "beta_2", "decay")),
        *(f"Adam/{name}/{slot}" for name in trained for slot in "mv"),
    }


class Halved(keras.optimizers.SGD):
    """Halves gradients in its own `apply_gradients`."""

    def apply_gradients(self, grads_and_vars):
        return super().apply_gradients([(0.5 * g, v) for g, v in grads_and_vars])


_MADE_OUTSIDE = keras.optimizers.SGD(0.1)


def _sum_model_fn(make_optimizer, times=1):
    def model_fn(features, labels, mode):
        kernel = tf1.get_variable("kernel", initializer=KERNEL, use_resource=True)
        optimizer = make_optimizer()
        loss = tf.reduce_sum(kernel)
        (slope,) = tf.gradients(loss, [kernel])
        updates = []
        for _ in range(times):
            with tf.control_dependencies(updates):
                updates.append(optimizer.apply_gradients([(slope, kernel)]))
        train_op = tf.group(*updates, tf1.train.get_global_step().assign_add(1))
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


# The slope is 1: each update takes the learning rate, or half of it, from the kernel.
@pytest.mark.more
@pytest.mark.parametrize(
    ("make_optimizer", "times", "step"),
    [(lambda: Halved(0.1), 1, 0.05), (lambda: _MADE_OUTSIDE, 1, 0.1), (lambda: _MADE_OUTSIDE, 2, 0.2)],
    ids=["a subclass", "made outside", "made outside, applied twice"],
)
def test_an_update_by_a_subclass_or_an_optimizer_from_outside(tmp_path, make_optimizer, times, step):
    estimator = est.Estimator(_sum_model_fn(make_optimizer, times), tmp_path)
    for _ in range(2):
        estimator.train(input_fn, steps=1)
    np.testing.assert_allclose(estimator.get_variable_value("kernel"), KERNEL - 2 * step, rtol=1e-5)
    (count,) = (n for n in estimator.get_variable_names() if n.endswith("iteration"))
    assert estimator.get_variable_value(count) == 2 * times
    assert _MADE_OUTSIDE.iterations.numpy() == 0


def test_a_loss_scale_optimizer_divides_the_gradients(tmp_path):
    make = lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0)  # noqa: E731
    estimator = est.Estimator(_sum_model_fn(make), tmp_path).train(input_fn, steps=1)
    np.testing.assert_allclose(estimator.get_variable_value("kernel"), KERNEL - 0.1 / 4)


def test_a_function_may_make_an_optimizer_with_a_calculated_learning_rate(tmp_path):
    def make_optimizer():
        return keras.optimizers.SGD(tf.where(tf1.train.get_or_create_global_step() < 1, 0.5, 0.25))

    def model_fn(features, labels, mode):
        loss = tf.reduce_sum(tf1.get_variable("kernel", initializer=KERNEL, use_resource=True))
        return est.EstimatorSpec(mode, loss=loss, train_op=minimize(make_optimizer, loss))

    estimator = est.Estimator(model_fn, tmp_path).train(input_fn, steps=2)
    np.testing.assert_allclose(estimator.get_variable_value("kernel"), KERNEL - 0.75)
