import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.keras_models.models import (
    DEEP,
    TWO_FEATURES,
    WIDE,
    Tower,
    X,
    Y,
    batches,
    functional,
    two_by_two,
)
from tests.estimator_core.programs import saved_steps


@pytest.mark.more
@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
def test_an_untrained_model_is_exported_as_it_is(tmp_path, checkpoint_format):
    model = functional()
    estimator = est.model_to_estimator(
        model, model_dir=tmp_path / "model", checkpoint_format=checkpoint_format
    )

    def receiver_fn():
        x = tf1.placeholder(tf.float32, [None, 4])
        return est.export.ServingInputReceiver({"x": x}, {"x": x})

    for _ in range(2):  # untrained, and trained
        path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn)
        serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
        expected = np.array([p["out"] for p in estimator.predict(batches)])
        np.testing.assert_allclose(serve(tf.constant(X))["out"], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(model.predict(X, verbose=0), expected, rtol=1e-5, atol=1e-6)
        estimator.train(batches)
        est.to_keras(estimator)


@pytest.mark.more
def test_object_based_checkpoints_are_read_by_keras(tmp_path):
    model = functional()
    config = est.RunConfig(save_checkpoints_steps=1, keep_checkpoint_max=2)
    estimator = est.model_to_estimator(model, model_dir=str(tmp_path), config=config)
    estimator.train(batches, max_steps=4)
    estimator.train(batches, max_steps=4)  # has been reached
    other, optimizer = functional(), keras.optimizers.Adam()
    optimizer.build(other.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=other, optimizer=optimizer)
    checkpoint.restore(tf.train.latest_checkpoint(str(tmp_path))).expect_partial()
    np.testing.assert_allclose(other.predict(X, verbose=0), est.to_keras(estimator).predict(X, verbose=0))
    assert optimizer.iterations.numpy() == 4
    assert saved_steps(tmp_path) == [3, 4]


def test_a_model_is_loaded_from_a_path(tmp_path):
    model = functional()
    path = str(tmp_path / "model.keras")
    model.save(path)
    estimator = est.model_to_estimator(keras_model_path=path, model_dir=str(tmp_path / "model"))
    predictions = [p["out"] for p in estimator.predict(batches)]
    np.testing.assert_allclose(predictions, model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["absent.keras", "saved_model", "model.h5"])
def test_a_path_that_keras_cannot_load(tmp_path, name):
    if name == "saved_model":
        tf.saved_model.save(tf.Module(), str(tmp_path / name))
    elif name == "model.h5":
        (tmp_path / name).write_bytes(b"no HDF5")
    with pytest.raises(ValueError, match="load it yourself, with tf_keras.*Received.*" + name):
        est.model_to_estimator(keras_model_path=str(tmp_path / name))


class OwnTraining(Tower):
    def train_step(self, data):
        return {}


def _compiled(model):
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict, ValueError, "Either keras_model or keras_model_path"),
        (lambda: {"keras_model": functional(), "keras_model_path": "x"}, ValueError, "not both"),
        (lambda: {"keras_model": Tower(1)}, ValueError, "has not been compiled"),
        (
            lambda: {"keras_model": functional(), "checkpoint_format": "h5"},
            ValueError,
            "checkpoint.*saver.*h5",
        ),
        (lambda: {"keras_model": "model.h5"}, TypeError, "must be a Keras model"),
        (lambda: {"keras_model": _compiled(OwnTraining(1))}, ValueError, "overrides train_step"),
    ],
)
def test_what_cannot_become_an_estimator_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        est.model_to_estimator(**arguments())


def test_unknown_names_of_inputs_list_those_of_the_model():
    estimator = est.model_to_estimator(two_by_two())
    with pytest.raises(KeyError, match=r"lacks \['deep'\].*'wide', 'deep'.*Received: \['wide', 'z'\]"):
        list(estimator.predict(lambda: batches({"wide": WIDE, "z": DEEP}, Y)))
    with pytest.raises(ValueError, match="takes 2 features"):
        list(estimator.predict(lambda: batches(WIDE, Y)))
    with pytest.raises(KeyError, match=r"labels lacks \['kind'\]"):
        estimator.train(lambda: batches(TWO_FEATURES["by name"], {"value": Y}))
