import keras
import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.circles import in_circles
from tests.estimator_core.keras_models.models import (
    DEEP,
    TWO_FEATURES,
    TWO_LABELS,
    WEIGHTS,
    WIDE,
    Scaled,
    Tower,
    X,
    Y,
    batches,
    functional,
    two_by_two,
)


def _sequential():
    model = keras.Sequential([keras.layers.Dense(5, "tanh", name="a"), keras.layers.Dense(1, name="b")])
    model.build((None, 4))
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "mse", metrics=["mae"])
    return model


def _subclassed():
    model = Tower(3)
    model(X[:1])
    model.compile("adam", "mse", metrics=["mae", keras.metrics.R2Score()])
    return model


def _recurrent():
    inputs = keras.Input((4,), name="x")
    sequence = keras.layers.Reshape((2, 2))(inputs)
    state = keras.layers.LSTM(3, dropout=0.3, recurrent_dropout=0.2, name="lstm")(sequence)
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(state))
    model.compile("rmsprop", "mse", metrics=["mae"])
    return model


def _frozen_inside():
    layers = [keras.layers.Dense(4, name="inner"), keras.layers.BatchNormalization(name="inner_norm")]
    inner = keras.Sequential([keras.Input((4,)), *layers], name="base")
    for layer in layers:
        layer.trainable = False
    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(inner(inputs)))
    model.compile("adam", "mse", metrics=["mae"])
    return model


def _own_functions():
    """Objects that no configuration could hold: a function, a loss object, a metric object."""

    def own(labels, predictions):
        return tf.reduce_mean(tf.abs(labels - predictions) ** 1.5, axis=-1)

    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(inputs))
    model.compile("adam", own, metrics=[keras.metrics.MeanAbsoluteError(name="error"), own])
    return model


def _twice(x):
    return tf.multiply(x, 2.0)


def _lambdas():
    shift = 3.0
    inputs = keras.Input((4,), name="x")
    inner = keras.Sequential([keras.Input((4,)), keras.layers.Lambda(_twice)])(inputs)
    hidden = keras.layers.Lambda(
        lambda x: tf.concat([x, x + shift], 1), output_shape=lambda shape: (shape[0], 8)
    )(inner)
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(hidden))
    model.compile("adam", "mse", metrics=["mae"])
    return model


def _error(labels, predictions):
    return tf.abs(labels - predictions)


def _tripled_error(labels, predictions):
    return 3.0 * _error(labels, predictions)


def _wrapped_metrics():
    wrapped = [("own", _tripled_error), ("other", _error)]
    metrics = [keras.metrics.MeanMetricWrapper(function, name=name) for name, function in wrapped]
    return functional(metrics=[*metrics, Scaled(), keras.metrics.AUC(multi_label=True, num_labels=1)])


def _loss_scale():
    sgd = keras.optimizers.SGD(0.1)
    return functional(keras.optimizers.LossScaleOptimizer(sgd, initial_scale=4, dynamic_growth_steps=3))


def _schedule():
    return functional(keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)))


_MODELS = {
    "lambdas": _lambdas,
    "wrapped metrics": _wrapped_metrics,
    "functional": functional,
    "sequential": _sequential,
    "subclassed": _subclassed,
    "recurrent": _recurrent,
    "frozen inside": _frozen_inside,
    "own functions": _own_functions,
    "schedule": _schedule,
    "clipnorm": lambda: functional(keras.optimizers.SGD(0.5, clipnorm=0.01)),
    "clipvalue": lambda: functional(keras.optimizers.SGD(0.5, clipvalue=0.01)),
    "global clipnorm": lambda: functional(keras.optimizers.Adam(0.1, global_clipnorm=0.01)),
    "accumulated": lambda: functional(keras.optimizers.Adam(0.1, gradient_accumulation_steps=2)),
    "moving average": lambda: functional(keras.optimizers.Adam(0.1, use_ema=True, ema_overwrite_frequency=3)),
    "loss scale": _loss_scale,
    "weight decay": lambda: functional(keras.optimizers.SGD(0.1, weight_decay=0.1)),
    **{name: lambda name=name: functional(name) for name in ("adafactor", "ftrl", "lion", "nadam")},
}

# Other settings of an optimizer, and other optimizers, go the way that "functional" goes.
_FAST = ("wrapped metrics", "functional", "sequential", "subclassed", "frozen inside")


def _assert_same_values(found, expected, rtol=1e-5):
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=rtol, atol=1e-6)


def _assert_same_metrics(results, expected):
    found = {name: value for name, value in results.items() if name != "global_step"}
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.more
@pytest.mark.parametrize("name", in_circles(_MODELS, slow=_MODELS.keys() - _FAST))
def test_training_and_evaluation_are_those_of_keras(tmp_path, name):
    model = _MODELS[name]()
    untrained = model.evaluate(batches(), verbose=0, return_dict=True)
    estimator = est.model_to_estimator(model, model_dir=tmp_path)
    before = model.get_weights()
    _assert_same_metrics(estimator.evaluate(batches), untrained)
    estimator.train(batches, steps=2)
    estimator.train(lambda: batches().skip(2))  # continues from the checkpoint
    for value, old in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, old)
    results = estimator.evaluate(batches)
    predictions = [value for row in estimator.predict(batches) for value in row.values()]  # of one output

    model.fit(batches(), verbose=0, shuffle=False)
    fitted = model.get_weights()
    _assert_same_metrics(results, model.evaluate(batches(), verbose=0, return_dict=True))
    np.testing.assert_allclose(predictions, model.predict(X, verbose=0), rtol=1e-5, atol=1e-6)
    assert est.to_keras(estimator) is model
    _assert_same_values(model.get_weights(), fitted)


_TWO_WEIGHTS = {
    "none": None,
    "one for all": WEIGHTS,
    "by name": {"kind": WEIGHTS, "value": WEIGHTS[::-1].copy()},
}


def _structures_and_weights():
    for structure in TWO_FEATURES:
        for weights in _TWO_WEIGHTS:
            fast = (structure, weights) in (("by name", "by name"), ("in order", "one for all"))
            yield pytest.param(structure, weights, marks=() if fast else pytest.mark.slow)


@pytest.mark.more
@pytest.mark.parametrize(("structure", "weights"), _structures_and_weights())
def test_two_inputs_and_outputs(tmp_path, structure, weights):
    model = two_by_two()
    features, labels = TWO_FEATURES[structure], TWO_LABELS[structure]
    if weights != "none":
        features = {"features": features, "sample_weights": _TWO_WEIGHTS[weights]}
    estimator = est.model_to_estimator(model, model_dir=tmp_path)
    estimator.train(lambda: batches(features, labels))
    results = estimator.evaluate(lambda: batches(features, labels))
    predictions = list(estimator.predict(lambda: batches(TWO_FEATURES[structure], labels)))

    for_keras = [TWO_FEATURES["in order"], TWO_LABELS["in order"]]
    if weights == "by name":
        for_keras.append((_TWO_WEIGHTS[weights]["value"], _TWO_WEIGHTS[weights]["kind"]))
    elif weights != "none":
        for_keras.append((WEIGHTS, WEIGHTS))
    dataset = tf.data.Dataset.from_tensor_slices(tuple(for_keras)).batch(8)
    model.fit(dataset, verbose=0, shuffle=False)
    expected = model.evaluate(dataset, verbose=0, return_dict=True)
    _assert_same_metrics(
        results, {name: expected[name] for name in expected if name not in ("value_loss", "kind_loss")}
    )
    assert set(predictions[0]) == {"value", "kind"}
    for name, output in zip(("value", "kind"), model.predict([WIDE, DEEP], verbose=0), strict=True):
        np.testing.assert_allclose([p[name] for p in predictions], output, rtol=1e-5, atol=1e-6)


@pytest.mark.more
def test_a_loss_scale_grows_as_in_keras(tmp_path):
    estimator = est.model_to_estimator(_loss_scale(), model_dir=tmp_path, checkpoint_format="saver")
    estimator.train(batches, steps=4)
    names = [name for name in estimator.get_variable_names() if "dynamic_scale" in name]
    # Doubled after the third step.
    assert [estimator.get_variable_value(name) for name in names] == [8.0]


@pytest.mark.more
def test_names_in_checkpoints_are_those_of_the_layers(tmp_path):
    estimator = est.model_to_estimator(functional(), model_dir=tmp_path, checkpoint_format="saver")
    estimator.train(batches, steps=1)
    trained = ["hidden/kernel", "hidden/bias", "norm/gamma", "norm/beta", "out/kernel", "out/bias"]
    slots = [f"adam/{name.replace('/', '_')}_{slot}" for name in trained for slot in ("momentum", "velocity")]
    assert set(estimator.get_variable_names()) == {
        *trained, *slots, "norm/moving_mean", "norm/moving_variance", "seed_generator/seed_generator_state",
        "adam/iteration", "adam/learning_rate", "global_step",
    }  # fmt: skip


@pytest.mark.parametrize(("make", "name"), [(_sequential, "b"), (_subclassed, "output_1")])
def test_predictions_go_by_the_names_of_outputs(make, name):
    assert list(next(est.model_to_estimator(make()).predict(batches))) == [name]


def test_a_class_of_a_package_named_like_keras_is_not_keras_own(tmp_path):
    doubled = type("Doubled", (keras.layers.Layer,), {"call": lambda self, x: x * 2.0})
    doubled.__module__ = "keras_project.layers"
    model = keras.Sequential([keras.Input((4,)), doubled(), keras.layers.Dense(1, name="out")])
    model.compile("sgd", "mse")
    rows = est.model_to_estimator(model, model_dir=tmp_path).predict(batches)
    expected = model.predict(X, verbose=0)
    np.testing.assert_allclose([row["out"] for row in rows], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("do", ["train", "evaluate"])
def test_missing_labels_are_named(tmp_path, do):
    estimator = est.model_to_estimator(functional(), model_dir=tmp_path)
    with pytest.raises(ValueError, match=r"needs labels.*Received: labels=None, loss='binary_"):
        getattr(estimator, do)(lambda: tf.data.Dataset.from_tensors(X))


class AddsItsLoss(keras.layers.Layer):
    def call(self, inputs):
        self.add_loss(keras.ops.mean(inputs**2))
        return inputs


def test_a_model_that_adds_its_losses_needs_no_labels(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1), AddsItsLoss()])
    model.compile("sgd")
    estimator = est.model_to_estimator(model, model_dir=tmp_path)
    expected = np.mean(model.predict(X, verbose=0) ** 2)
    results = estimator.evaluate(lambda: tf.data.Dataset.from_tensors(X))
    assert results["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "make_layer",
    [
        lambda: keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot"),
        lambda: keras.layers.TextVectorization(vocabulary=["a", "b"], output_mode="multi_hot"),
    ],
)
def test_layers_with_lookup_tables_are_refused(make_layer):
    words = keras.Input((1,), dtype="string", name="words")
    model = keras.Model(words, keras.layers.Dense(1)(make_layer()(words)))
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"lookup tables, \['(string_lookup|text_vec).*input_fn"):
        est.model_to_estimator(model)


@pytest.mark.more
@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
def test_two_replicas_with_half_the_batch_learn_what_fit_does(tmp_path, checkpoint_format):
    def batches(size=8):
        return tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).batch(size)

    model, same = _sequential(), _sequential()
    same.set_weights(model.get_weights())
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    config = est.RunConfig(model_dir=str(tmp_path), train_distribute=strategy)
    estimator = est.model_to_estimator(model, config=config, checkpoint_format=checkpoint_format)
    estimator.train(batches, steps=1)
    estimator.train(lambda: batches().skip(2), steps=1)  # continues from the checkpoint
    same.fit(batches(16), verbose=0, shuffle=False)
    _, mae = same.evaluate(batches(16), verbose=0)
    found = estimator.evaluate(batches)
    assert found["global_step"] == 2
    np.testing.assert_allclose(found["mae"], mae, rtol=1e-5)
    path = estimator.latest_checkpoint()
    keys = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    assert not any("total" in key for key in keys)  # variables of metrics
    if checkpoint_format == "checkpoint":
        tf.train.Checkpoint(model=model).restore(path).expect_partial()
    else:
        est.to_keras(estimator, model)
    _assert_same_values(model.get_weights(), same.get_weights())
