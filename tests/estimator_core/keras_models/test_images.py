"""Transfer learning on generated images: a frozen base, pooling, one Dense on top."""

import keras
import numpy as np
import pytest

import estimator_core as est
from tests.estimator_core.keras_models.models import batches

_SIZE = 32


def _images():
    """Bright and dark images: 1 and 0, three of four bright, so that a bias alone has to be learned."""
    random = np.random.RandomState(0)
    labels = np.minimum(np.arange(32) % 4, 1)
    images = random.uniform(-1, 0, (32, _SIZE, _SIZE, 3)) + labels[:, None, None, None]
    return images.astype(np.float32), labels[:, None].astype(np.float32)


def _on_top_of(base):
    base.trainable = False
    model = keras.Sequential([base, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1, name="top")])
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    return model


def _small_base():
    layers = keras.layers
    convolution = layers.Conv2D(8, 3, strides=2, padding="same", name="convolution")
    depthwise = layers.DepthwiseConv2D(3, padding="same", name="depthwise")
    given = [
        keras.Input((_SIZE, _SIZE, 3)),
        convolution,
        layers.BatchNormalization(name="norm"),
        layers.ReLU(),
    ]
    return keras.Sequential([*given, depthwise], name="base")


def _mobile_net():
    return keras.applications.MobileNetV2(input_shape=(_SIZE, _SIZE, 3), include_top=False, weights=None)


@pytest.mark.more
@pytest.mark.parametrize("make_base", [_small_base, pytest.param(_mobile_net, marks=pytest.mark.slow)])
def test_a_frozen_base_with_a_dense_on_top(tmp_path, make_base):
    keras.utils.set_random_seed(1)
    images, labels = _images()
    model = _on_top_of(make_base())
    frozen = [variable.numpy() for variable in model.layers[0].variables]
    estimator = est.model_to_estimator(model, model_dir=tmp_path)
    before = estimator.evaluate(lambda: batches(images, labels))
    estimator.train(lambda: batches(images, labels).repeat(), steps=50)
    after = estimator.evaluate(lambda: batches(images, labels))
    assert after["global_step"] == 50
    assert after["loss"] < before["loss"]
    predictions = [row["top"] for row in estimator.predict(lambda: batches(images, labels))]
    returned = est.to_keras(estimator)
    np.testing.assert_allclose(returned.predict(images, verbose=0), predictions, rtol=1e-5, atol=1e-5)
    for variable, value in zip(returned.layers[0].variables, frozen, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
