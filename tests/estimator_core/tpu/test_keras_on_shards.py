"""Keras models on shards, compared with Keras itself on the same batches."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tpu

BATCH_SIZE, STEPS = 16, 7
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(64, 6).astype(np.float32)
X[::3, 0] = 0.0
Y = (X[:, :3].sum(axis=1, keepdims=True) > 0).astype(np.float32)


@keras.saving.register_keras_serializable("test_keras_on_shards")
class AFifthForNothing(keras.layers.Layer):
    """Its `==` and `!=` mean the values of tensors, as everywhere in TensorFlow 2."""

    def call(self, inputs):
        nothing = 0.2 * tf.cast(inputs == 0.0, tf.float32)
        return nothing + inputs * tf.cast(inputs != 0.0, tf.float32)


@keras.saving.register_keras_serializable("test_keras_on_shards")
class ShareOfOnes(keras.metrics.Mean):
    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(tf.cast(y_true == 1.0, tf.float32))


def ones_weigh_three(y_true, y_pred):
    return tf.reduce_mean(tf.where(y_true == 1.0, 3.0, 1.0) * tf.square(y_true - y_pred))


def compiled(optimizer, loss="mean_squared_error", layer=keras.layers.Identity):
    keras.utils.set_random_seed(1)
    inputs = keras.Input([6], name="x")
    hidden = keras.layers.Dense(5, activation="relu")(layer()(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1, name="y")(layer()(hidden)))
    model.compile(optimizer, loss, metrics=[ShareOfOnes(name="ones")])
    return model


def input_fn():
    dataset = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return dataset.repeat().batch(BATCH_SIZE, drop_remainder=True)


def trained_by_keras(model):
    for (features, labels), _ in zip(input_fn().as_numpy_iterator(), range(STEPS), strict=False):
        model.train_on_batch(features["x"], labels)
    return model


def trained_on_shards(model, num_shards, model_dir):
    config = tpu.TPUConfig(iterations_per_loop=3, num_shards=num_shards)
    estimator = tpu.to_tpu_estimator(
        est.model_to_estimator(model, model_dir=str(model_dir)), *[BATCH_SIZE] * 3, config=config
    )
    return estimator.train(input_fn, steps=STEPS)


def value(estimator, part_of_name):
    (name,) = (name for name in estimator.get_variable_names() if part_of_name in name)
    return estimator.get_variable_value(name)


def kernel(estimator):
    return value(estimator, "variables/0_kernel/")


OPTIMIZERS = {
    "accumulation": lambda: keras.optimizers.SGD(0.05, gradient_accumulation_steps=3),
    "ema": lambda: keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=5),
    "scaled": lambda: keras.optimizers.SGD(0.05, loss_scale_factor=64.0),
    "dynamic": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.05), initial_scale=1024.0, dynamic_growth_steps=3
    ),
}


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "num_shards"),
    [("accumulation", 1), ("accumulation", 4), ("ema", 4), ("scaled", 4), ("dynamic", 4)],
)
def test_an_optimizer_does_what_it_does_every_few_steps(tmp_path, name, num_shards):
    by_keras = trained_by_keras(compiled(OPTIMIZERS[name]()))
    estimator = trained_on_shards(compiled(OPTIMIZERS[name]()), num_shards, tmp_path)
    np.testing.assert_allclose(kernel(estimator), by_keras.weights[0].numpy(), atol=1e-5)
    if name == "dynamic":  # doubled at steps 3 and 6
        assert value(estimator, "dynamic_scale") == 4096.0


@pytest.mark.more
def test_equality_in_a_model_a_loss_and_a_metric_means_values(tmp_path):
    def model():
        return compiled(keras.optimizers.SGD(0.05), ones_weigh_three, AFifthForNothing)

    by_keras = trained_by_keras(model())
    estimator = trained_on_shards(model(), 4, tmp_path)
    np.testing.assert_allclose(kernel(estimator), by_keras.weights[0].numpy(), atol=1e-5)
    metrics = estimator.evaluate(input_fn, steps=4)
    outputs = by_keras.predict_on_batch(X)
    np.testing.assert_allclose(metrics["ones"], Y.mean())
    np.testing.assert_allclose(
        metrics["loss"], np.mean(np.where(Y == 1.0, 3.0, 1.0) * (Y - outputs) ** 2), rtol=1e-4
    )
    np.testing.assert_allclose(next(estimator.predict(input_fn))["y"], outputs[0], atol=1e-5)
