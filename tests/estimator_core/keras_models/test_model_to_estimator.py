import keras
import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est

tf1 = tf.compat.v1


_RANDOM = np.random.RandomState(0)


_X = _RANDOM.randn(48, 4).astype(np.float32)


_Y = (_X.sum(axis=1, keepdims=True) > 0).astype(np.float32)


class Tower(keras.Model):
    """A subclassed model with a configuration."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.hidden = keras.layers.Dense(units, activation="relu")
        self.norm = keras.layers.BatchNormalization()
        self.out = keras.layers.Dense(1)

    def get_config(self):
        return {**super().get_config(), "units": self.units}

    def call(self, inputs, training=False):
        return self.out(self.norm(self.hidden(inputs), training=training))


def _functional(optimizer="adam", **compile_args):
    inputs = keras.Input((4,), name="x")
    hidden = keras.layers.Dense(6, "relu", name="hidden", kernel_regularizer="l2")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    hidden = keras.layers.Dropout(0.4, seed=7)(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid", name="out")(hidden))
    model.compile(optimizer, "binary_crossentropy", **(compile_args or {"metrics": ["accuracy"]}))
    return model


def _batches(x=_X, y=_Y):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def _two_by_two():
    wide, deep = keras.Input((2,), name="wide"), keras.Input((2,), name="deep")
    joined = keras.layers.Concatenate()([wide, deep])
    value = keras.layers.Dense(1, name="value")(joined)
    kind = keras.layers.Dense(2, "softmax", name="kind")(joined)
    model = keras.Model([wide, deep], [value, kind])
    model.compile(
        "adam",
        {"value": "mse", "kind": "sparse_categorical_crossentropy"},
        loss_weights={"value": 0.3, "kind": 2.0},
        metrics={"value": ["mae"], "kind": ["accuracy"]},
        weighted_metrics={"value": ["mse"]},
    )
    return model


_WIDE, _DEEP = _X[:, :2], _X[:, 2:]


_TWO_FEATURES = {
    "by name": {"deep": _DEEP, "wide": _WIDE},
    "in order": (_WIDE, _DEEP),
}


@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
def test_an_untrained_model_is_exported_as_it_is(tmp_path, checkpoint_format):
    model = _functional()
    estimator = est.model_to_estimator(
        model, model_dir=tmp_path / "model", checkpoint_format=checkpoint_format
    )

    def receiver_fn():
        x = tf1.placeholder(tf.float32, [None, 4])
        return est.export.ServingInputReceiver({"x": x}, {"x": x})

    for _ in range(2):  # untrained, and trained
        path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn)
        serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
        expected = np.array([p["out"] for p in estimator.predict(_batches)])
        np.testing.assert_allclose(serve(tf.constant(_X))["out"], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(model.predict(_X, verbose=0), expected, rtol=1e-5, atol=1e-6)
        estimator.train(_batches)
        est.to_keras(estimator)


def test_object_based_checkpoints_are_read_by_keras(tmp_path):
    model = _functional()
    config = est.RunConfig(save_checkpoints_steps=1, keep_checkpoint_max=2)
    estimator = est.model_to_estimator(model, model_dir=str(tmp_path), config=config)
    estimator.train(_batches, max_steps=4)
    estimator.train(_batches, max_steps=4)  # has been reached
    other, optimizer = _functional(), keras.optimizers.Adam()
    optimizer.build(other.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=other, optimizer=optimizer)
    checkpoint.restore(tf.train.latest_checkpoint(str(tmp_path))).expect_partial()
    np.testing.assert_allclose(
        other.predict(_X, verbose=0), est.to_keras(estimator).predict(_X, verbose=0)
    )
    assert optimizer.iterations.numpy() == 4
    kept = tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths
    assert [path.rpartition("-")[2] for path in kept] == ["3", "4"]


def test_a_model_is_loaded_from_a_path(tmp_path):
    model = _functional()
    path = str(tmp_path / "model.keras")
    model.save(path)
    estimator = est.model_to_estimator(keras_model_path=path, model_dir=str(tmp_path / "model"))
    predictions = [p["out"] for p in estimator.predict(_batches)]
    np.testing.assert_allclose(predictions, model.predict(_X, verbose=0), rtol=1e-5, atol=1e-6)


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
        (lambda: {"keras_model": _functional(), "keras_model_path": "x"}, ValueError, "not both"),
        (lambda: {"keras_model": Tower(1)}, ValueError, "has not been compiled"),
        (
            lambda: {"keras_model": _functional(), "checkpoint_format": "h5"},
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
    estimator = est.model_to_estimator(_two_by_two())
    with pytest.raises(
        KeyError, match=r"lacks \['deep'\].*'wide', 'deep'.*Received: \['wide', 'z'\]"
    ):
        list(estimator.predict(lambda: _batches({"wide": _WIDE, "z": _DEEP}, _Y)))
    with pytest.raises(ValueError, match="takes 2 features"):
        list(estimator.predict(lambda: _batches(_WIDE, _Y)))
    with pytest.raises(KeyError, match=r"labels lacks \['kind'\]"):
        estimator.train(lambda: _batches(_TWO_FEATURES["by name"], {"value": _Y}))
