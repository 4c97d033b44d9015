"""Each private name of Keras still does as this package expects."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.keras_in_graph import keras_internals


def test_names_are_numbered_from_the_start_within_and_go_on_afterwards():
    def name():
        return keras.layers.Identity().name

    before = name()
    with keras_internals.fresh_names():
        assert [name(), name()] == ["identity", "identity_1"]
    number = int(before.partition("_")[2] or 0)
    assert name() == f"identity_{number + 1}"


def test_the_path_of_what_is_being_built():
    paths = []

    class Layer(keras.layers.Layer):
        def build(self, shape):
            paths.append(keras_internals.current_path())

    assert keras_internals.current_path() == ""
    keras.Sequential([Layer(name="inner")], name="outer").build((None, 2))
    assert paths in (["inner"], ["outer/inner"])


def test_a_stateless_scope_shows():
    assert not keras_internals.in_stateless_scope()
    with keras.StatelessScope():
        assert keras_internals.in_stateless_scope()


def test_random_states_are_told_from_other_variables():
    assert keras_internals.is_random_state(keras.random.SeedGenerator(1).state)
    assert not keras_internals.is_random_state(keras.Variable(1.0, name="state"))


def test_gradients_are_clipped_as_the_optimizer_says():
    optimizer = keras.optimizers.SGD(clipnorm=5.0)
    (clipped,) = keras_internals.clipped_gradients(optimizer, [tf.constant([30.0, 40.0])])
    np.testing.assert_allclose(clipped, [3.0, 4.0], rtol=1e-6)


def test_weight_decay_spares_excluded_variables():
    kept, spared = keras.Variable(1.0, name="kept"), keras.Variable(1.0, name="spared")
    optimizer = keras.optimizers.SGD(weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_names=["spared"])
    optimizer.build([kept, spared])
    assert [keras_internals.decays_weight(optimizer, v) for v in (kept, spared)] == [True, False]


def test_layers_within_layers():
    inner = keras.Sequential([keras.layers.Dense(1, name="a")], name="inner")
    model = keras.Sequential([keras.Input((2,)), inner, keras.layers.Dense(1, name="b")], name="m")
    names = [layer.name for layer in keras_internals.flattened_layers(model)]
    assert names[0] == "m"
    assert {"inner", "a", "b"} <= set(names)
    assert names.index("inner") < names.index("a")


def test_functions_of_metrics_and_lambdas():
    def own(labels, predictions):
        return labels

    def shape(input_shape):
        return input_shape

    assert keras_internals.metric_function(keras.metrics.MeanMetricWrapper(own)) is own
    assert keras_internals.metric_function(keras.metrics.Mean()) is None
    layer = keras.layers.Lambda(lambda x: x, output_shape=shape)
    assert keras_internals.lambda_output_shape(layer) is shape


def test_what_a_model_was_compiled_with_and_its_loss_trackers():
    metric = keras.metrics.MeanAbsoluteError()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[metric])
    settings = keras_internals.compile_settings(model)
    assert settings["loss"] == "mse"
    assert settings["metrics"][0] is metric
    keras_internals.make_metrics(model, (tf.zeros([3, 2]), tf.zeros([3, 1]), None))
    trackers = keras_internals.loss_trackers(model)
    assert "loss" in [other.name for other in trackers if other is not None]
    assert [m for m in model.metrics if not any(m is tracker for tracker in trackers)]
    assert any(variable.name == "total" for variable in model.metrics_variables)


def test_what_tf_keras_keeps_to_itself():
    tf_keras = pytest.importorskip("tf_keras")
    legacy = tf_keras.optimizers.legacy.SGD(0.5)
    assert keras_internals.legacy_hyperparameters(legacy)["learning_rate"] == 0.5
    assert not legacy.weights
    scaled = tf_keras.mixed_precision.LossScaleOptimizer(legacy)
    assert keras_internals.legacy_hyperparameters(scaled) is None
    converted = keras_internals.legacy_optimizer_like(tf_keras.optimizers.Adam(0.25, beta_1=0.5))
    assert isinstance(converted, tf_keras.optimizers.legacy.Adam)
    assert (converted.get_config()["learning_rate"], converted.get_config()["beta_1"]) == (0.25, 0.5)


def test_a_copy_of_a_tf_keras_model_for_a_graph_leaves_the_model_usable():
    tf_keras = pytest.importorskip("tf_keras")

    class Own(tf_keras.Model):
        pass

    model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,), name="out")])
    loss = tf_keras.losses.MeanSquaredError()
    model.compile("sgd", loss)
    assert keras_internals.is_functional(model)
    assert not keras_internals.is_functional(Own())
    assert keras_internals.tf_keras_compile_settings(model)["loss"] is loss
    expected = model(tf.ones([1, 2])).numpy()
    with tf.Graph().as_default() as graph:
        copy = keras_internals.clone_optimizer(model, [tf.ones([1, 2])], {})
        assert copy.weights[0].graph is graph
        copy.compile("sgd", "mse", target_tensors=[tf.constant([[2.0]])])
        keras_internals.weigh_losses(copy, [tf.constant([3.0])])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            output, total = session.run([copy.outputs[0], copy.total_loss])
        assert total == pytest.approx(3.0 * (output[0, 0] - 2.0) ** 2, rel=1e-5)
    keras_internals.restore_eager_classes(model)
    np.testing.assert_array_equal(model.predict(np.ones([1, 2]), verbose=0), expected)


def test_a_legacy_optimizer_takes_another_strategy():
    legacy = pytest.importorskip("tf_keras").optimizers.legacy.SGD(0.5)
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    keras_internals.set_legacy_strategy(legacy, strategy)
    with strategy.scope():
        variable = tf.Variable(1.0)
    legacy.apply_gradients([(tf.constant(1.0), variable)])
    assert variable.numpy() == 0.5


def test_a_layers_own_tf_variable_stays_in_checkpoints(tmp_path):
    class Layer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.raw = tf.Variable(2.0)

    layer = Layer()
    paths = {}
    for name, node in (("plain", layer), ("tracked", keras_internals.tracking_tf_variables(layer))):
        prefix = tf.train.Checkpoint(model=node).write(str(tmp_path / name))
        paths[name] = [path for path, _ in tf.train.list_variables(prefix)]
    assert "model/raw/.ATTRIBUTES/VARIABLE_VALUE" in paths["plain"]
    assert paths["tracked"] == paths["plain"]
