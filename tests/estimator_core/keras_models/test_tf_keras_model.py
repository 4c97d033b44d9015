import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import batch_of

keras = pytest.importorskip("tf_keras", reason="tf_keras is not installed")

_RANDOM = np.random.RandomState(0)
_X = _RANDOM.randn(32, 4).astype(np.float32)
_Y = _X.sum(axis=1, keepdims=True)

# In a graph, tf_keras itself warns about the functions that it is to be controlled by.

_OPTIMIZERS = {
    "adam": lambda: "adam",
    "schedule": lambda: keras.optimizers.SGD(
        keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5), momentum=0.9, clipnorm=0.5
    ),
    "legacy": lambda: keras.optimizers.legacy.RMSprop(0.01),
}


def _model(optimizer="adam"):
    keras.utils.set_random_seed(3)
    inputs = keras.Input((4,), name="x")
    hidden = keras.layers.Dense(6, "relu", name="hidden", kernel_regularizer="l2")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(hidden))
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def _batches(features=_X):
    return tf.data.Dataset.from_tensor_slices((features, _Y)).batch(8)


def _named_batches():
    return _batches({"x": _X})


def _assert_same_weights(found, expected, rtol=1e-5, atol=1e-6):
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, other, rtol=rtol, atol=atol)


def _assert_predicts_as_fitted(estimator, model, output="out", data=None):
    """The predictions of the Estimator are those of the model once it is fitted to the same batches."""
    predictions = [row[output] for row in estimator.predict(_batches)]
    model.fit(data or _batches(), verbose=0, shuffle=False)
    np.testing.assert_allclose(predictions, model.predict(_X, verbose=0), rtol=1e-5, atol=1e-6)


@pytest.mark.more
@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_training_and_evaluation_are_those_of_tf_keras(tmp_path, name, checkpoint_format):
    model = _model(_OPTIMIZERS[name]())
    initial = model.get_weights()
    estimator = est.model_to_estimator(model, model_dir=tmp_path, checkpoint_format=checkpoint_format)
    estimator.train(_named_batches, steps=2)
    estimator.train(lambda: _named_batches().skip(2))  # continues from the checkpoint
    results = estimator.evaluate(_batches)
    _assert_same_weights(model.get_weights(), initial, rtol=0, atol=0)

    _assert_predicts_as_fitted(estimator, model)
    expected = model.evaluate(_batches(), verbose=0, return_dict=True)
    assert results.pop("global_step") == 4
    assert results == pytest.approx(expected, rel=1e-5)
    fitted = model.get_weights()
    _assert_same_weights(est.to_keras(estimator).get_weights(), fitted)


@pytest.mark.more
def test_variables_have_the_names_of_tf_estimator_whatever_adam_it_is(tmp_path):
    for name, optimizer in (("new", "adam"), ("legacy", keras.optimizers.legacy.Adam())):
        estimator = est.model_to_estimator(
            _model(optimizer), model_dir=tmp_path / name, checkpoint_format="saver"
        ).train(_batches, steps=1)
        trained = ["hidden/kernel", "hidden/bias", "norm/gamma", "norm/beta", "out/kernel", "out/bias"]
        settings = ["learning_rate", "decay", "beta_1", "beta_2"]
        assert set(estimator.get_variable_names()) == {
            "global_step",
            "norm/moving_mean",
            "norm/moving_variance",
            *trained,
            *(f"training/Adam/{setting}" for setting in settings),
            *(f"training/Adam/{variable}/{slot}" for variable in trained for slot in "mv"),
        }


@pytest.mark.more
def test_an_optimizer_without_a_legacy_one_that_does_the_same(tmp_path):
    model = _model(keras.optimizers.AdamW(0.01, weight_decay=0.1))
    _assert_predicts_as_fitted(est.model_to_estimator(model, model_dir=tmp_path).train(_batches), model)


def _on_two_devices(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    return est.RunConfig(model_dir=str(tmp_path), train_distribute=strategy, eval_distribute=strategy)


@pytest.mark.more
@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
def test_two_replicas_with_half_the_batch_learn_what_fit_does(tmp_path, checkpoint_format):
    hidden = keras.layers.Dense(3, "relu", input_shape=(4,), name="hidden")
    model = keras.Sequential([hidden, keras.layers.Dense(1, name="out")])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", metrics=["mae"])
    estimator = est.model_to_estimator(
        model, config=_on_two_devices(tmp_path), checkpoint_format=checkpoint_format
    ).train(_batches, steps=1)
    estimator.train(lambda: _batches().skip(2), steps=1)  # continues from the checkpoint
    error = np.mean(np.abs([row["out"] for row in estimator.predict(_batches)] - _Y))
    np.testing.assert_allclose(estimator.evaluate(_batches)["mae"], error, rtol=1e-5)
    _assert_predicts_as_fitted(estimator, model, data=tf.data.Dataset.from_tensor_slices((_X, _Y)).batch(16))


@pytest.mark.more
def test_batch_normalization_on_two_replicas_leaves_the_model_as_it_is(tmp_path):
    model = _model(keras.optimizers.legacy.SGD(0.05))
    before = model.predict(_X, verbose=0)
    estimator = est.model_to_estimator(model, config=_on_two_devices(tmp_path), checkpoint_format="saver")
    estimator.train(_batches)
    assert estimator.get_variable_value("global_step") == 2
    assert np.abs(estimator.get_variable_value("norm/moving_mean")).max() > 0
    np.testing.assert_array_equal(model.predict(_X, verbose=0), before)


@pytest.mark.more
def test_sample_weights_train_as_in_keras(tmp_path):
    weights = _RANDOM.uniform(0.1, 2.0, 32).astype(np.float32)
    model = _model(keras.optimizers.SGD(0.1))
    estimator = est.model_to_estimator(model, model_dir=tmp_path)
    estimator.train(lambda: _batches({"features": {"x": _X}, "sample_weights": weights}))
    weighted = tf.data.Dataset.from_tensor_slices((_X, _Y, weights)).batch(8)
    _assert_predicts_as_fitted(estimator, model, data=weighted)


@pytest.mark.more
def test_dropout_and_statistics_change_in_training_only(tmp_path):
    norm = keras.layers.BatchNormalization(momentum=0.5, name="norm")
    top = keras.layers.Dense(1, trainable=False, kernel_initializer="ones", name="dense")
    model = keras.Sequential([keras.layers.Dropout(0.5, seed=1, input_shape=(4,)), norm, top])
    model.compile("sgd", "mse")
    estimator = est.model_to_estimator(model, model_dir=tmp_path, checkpoint_format="saver")
    estimator.train(_batches, steps=1)
    mean = estimator.get_variable_value("norm/moving_mean")
    # Dropout at 0.5 keeps an input as twice itself or drops it: half the sum over the batch of 8,
    # divided by 8, for some of the 2^8 choices.
    choices = np.array([[(n >> bit) & 1 for bit in range(8)] for n in range(256)])
    for column in range(4):
        means = choices @ (2 * _X[:8, column]) / 8 / 2
        assert np.min(np.abs(means - mean[column])) < 1e-6
    estimator.evaluate(_batches)
    predictions = [row["dense"] for row in estimator.predict(_batches)]
    returned = est.to_keras(estimator)
    np.testing.assert_allclose(predictions, returned.predict(_X, verbose=0), rtol=1e-5, atol=1e-6)


@pytest.mark.more
def test_an_untrained_model_is_exported_as_it_is(tmp_path):
    model = _model()
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None, 4])})
    estimator = est.model_to_estimator(model, model_dir=tmp_path / "model")
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn)
    serve = tf.saved_model.load(path.decode()).signatures["serving_default"]
    expected = model.predict(_X, verbose=0)
    np.testing.assert_allclose(serve(tf.constant(_X))["out"], expected, rtol=1e-5, atol=1e-6)


class _Own(keras.Model):
    """A subclass with its own call, a constructor with an argument, and two outputs."""

    def __init__(self, rate):
        super().__init__()
        self.norm = keras.layers.BatchNormalization(name="norm")
        self.drop = keras.layers.Dropout(rate)
        self.out = keras.layers.Dense(1, name="out")

    def call(self, inputs, training=None):
        hidden = self.drop(self.norm(inputs["x"], training=training), training=training)
        return self.out(hidden), hidden


def _own(rate=0.0):
    keras.utils.set_random_seed(3)
    model = _Own(rate)
    model.compile(keras.optimizers.SGD(0.1), ["mse", None], metrics=[["mae"], []])
    return model


def _own_batches():
    return _named_batches().map(lambda x, y: (x, (y, y)))


@pytest.mark.more
@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
def test_a_subclass_trains_as_in_tf_keras(tmp_path, checkpoint_format):
    model = _own()
    model({"x": _X})
    initial = model.get_weights()
    estimator = est.model_to_estimator(model, model_dir=tmp_path, checkpoint_format=checkpoint_format)
    estimator.train(_own_batches, steps=2)
    estimator.train(lambda: _own_batches().skip(2))
    results = estimator.evaluate(_own_batches)
    predictions = [row["output_1"] for row in estimator.predict(_named_batches)]
    _assert_same_weights(model.get_weights(), initial, rtol=0, atol=0)

    model.fit(_own_batches(), verbose=0, shuffle=False)
    expected = model.evaluate(_own_batches(), verbose=0, return_dict=True)
    assert results["global_step"] == 4
    assert results["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    np.testing.assert_allclose(predictions, model({"x": _X})[0], rtol=1e-5, atol=1e-6)
    fitted = model.get_weights()
    _assert_same_weights(est.to_keras(estimator).get_weights(), fitted)


@pytest.mark.more
def test_a_subclass_that_was_never_called_starts_from_its_initializers(tmp_path):
    estimator = est.model_to_estimator(_own(), model_dir=tmp_path).train(_own_batches, steps=1)
    assert np.isfinite(estimator.evaluate(_own_batches)["loss"])
    with pytest.raises(ValueError, match="call the model once"):
        est.to_keras(estimator)


def test_a_subclass_without_a_complete_configuration_is_refused():
    class Holding(keras.Model):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

    model = Holding(keras.layers.Dense(1))
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"give its class a get_config\(\)"):
        est.model_to_estimator(model)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_model_compiled_with_an_optimizer_of_tensorflow(tmp_path, is_fitted):
    """Names of 2.15; the numbers are those of the Keras optimizer with the same formula."""

    def of(optimizer):
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,), name="out")])
        model.set_weights([np.ones([4, 1]), np.zeros([1])])
        model.compile(optimizer, "mse")
        return model

    model = of(tf1.train.AdamOptimizer(0.1, epsilon=1e-7))
    if is_fitted:
        model.fit(_batches(), verbose=0)
        model.set_weights([np.ones([4, 1]), np.zeros([1])])
    estimator = est.model_to_estimator(model, model_dir=tmp_path, checkpoint_format="saver")
    estimator.train(_batches, steps=2)
    estimator.train(lambda: _batches().skip(2))
    other = of(keras.optimizers.legacy.Adam(0.1))
    other.fit(_batches(), verbose=0, shuffle=False)
    for name, value in zip(("kernel", "bias"), other.get_weights(), strict=True):
        np.testing.assert_allclose(estimator.get_variable_value(f"out/{name}"), value, rtol=1e-4, atol=1e-6)
    slots = [f"out/{name}/{slot}" for name in ("kernel", "bias") for slot in ("Adam", "Adam_1")]
    powers = ["training/beta1_power", "training/beta2_power"]
    assert set(estimator.get_variable_names()) == {
        *("global_step", "out/kernel", "out/bias"),
        *slots,
        *powers,
    }


@pytest.mark.parametrize("do", ["train", "evaluate"])
def test_missing_labels_are_named(tmp_path, do):
    estimator = est.model_to_estimator(_model(), model_dir=tmp_path)
    with pytest.raises(ValueError, match=r"needs labels.*Received: labels=None, loss='mse'"):
        getattr(estimator, do)(lambda: tf.data.Dataset.from_tensors(_X))


def test_an_object_based_checkpoint_of_tf_estimator_says_how_to_go_on(tmp_path):
    model = _model()
    # tf.estimator 2.15 wrote the model itself as the root: "layer_with_weights-0/kernel".
    step = tf.Variable(8, dtype=tf.int64)
    saved = tf.train.Checkpoint(root=_model(), estimator_global_step=step)
    tf1.train.update_checkpoint_state(str(tmp_path), saved.write(str(tmp_path / "model.ckpt-8")))
    with pytest.raises(ValueError, match=r"Checkpoint\(root=model\).*another model_dir.*ckpt-8"):
        est.model_to_estimator(model, model_dir=tmp_path)


def test_a_wide_and_deep_model_of_two_optimizers_is_refused():
    """2.15 trains it if both are of tf_keras.optimizers.legacy, and counts each step twice."""

    def made(optimizer):
        wide = keras.experimental.LinearModel(kernel_initializer="zeros")
        deep = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
        model = keras.experimental.WideDeepModel(wide, deep)
        model.compile(optimizer, "mse")
        return est.model_to_estimator(model)

    sgd = keras.optimizers.legacy.SGD
    with pytest.raises(ValueError, match="two optimizers can't be made an Estimator: compile it with"):
        made([sgd(0.1), sgd(0.2)])
    # From a prediction of 0 * 1 + 1 * 1, all gradients are 2 * (1 - 3).
    features = ([[1.0]], [[1.0]])
    estimator = made(sgd(0.1)).train(batch_of(features, [[3.0]]), steps=1)
    predictions = estimator.predict(batch_of((features,)))
    assert next(predictions)["output_1"] == pytest.approx(0.4 + 0.4 + 1.4 + 0.4)


def test_only_evaluation_has_the_metrics_in_its_graph(tmp_path):
    estimator = est.model_to_estimator(_model(), model_dir=tmp_path)
    modes = []
    for mode in ("train", "eval"):
        with tf.Graph().as_default() as graph:
            tf1.train.create_global_step()
            estimator.model_fn({"x": tf.constant(_X)}, tf.constant(_Y), mode, estimator.config)
        if any(operation.name.startswith("metrics/mae/") for operation in graph.get_operations()):
            modes.append(mode)
    assert modes == ["eval"]
