import keras
import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.keras_models.live_objects import fresh_metric, with_live_functions

_RANDOM = np.random.RandomState(0)


_X = _RANDOM.randn(48, 4).astype(np.float32)


_Y = (_X.sum(axis=1, keepdims=True) > 0).astype(np.float32)


def _functional(optimizer="adam", **compile_args):
    inputs = keras.Input((4,), name="x")
    hidden = keras.layers.Dense(6, "relu", name="hidden", kernel_regularizer="l2")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    hidden = keras.layers.Dropout(0.4, seed=7)(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid", name="out")(hidden))
    model.compile(optimizer, "binary_crossentropy", **(compile_args or {"metrics": ["accuracy"]}))
    return model


class Scaled(keras.metrics.Metric):
    """The sum of predictions by a factor, in several places; its configuration is left out."""

    def __init__(self, factor=2.0, places=2, name="scaled", **kwargs):
        super().__init__(name=name, **kwargs)
        self.factor = factor
        self.total = self.add_weight(shape=(places,), initializer="zeros", name="total")

    def update_state(self, labels, predictions, sample_weight=None):
        self.total.assign_add(self.factor * keras.ops.ones_like(self.total))

    def result(self):
        return keras.ops.sum(self.total)


def _batches(x=_X, y=_Y):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


@pytest.mark.parametrize("arguments", [{"factor": 3.0}, {"places": 3}])
def test_a_metric_with_less_configuration_than_arguments_is_refused(tmp_path, arguments):
    model = _functional(metrics=[Scaled(**arguments)])
    estimator = est.model_to_estimator(model, model_dir=tmp_path)
    with pytest.raises(ValueError, match=r"get_config\(\) must return all arguments.*Scaled"):
        estimator.evaluate(_batches)


def test_names_classes_and_functions_stand_for_themselves():
    def own(labels, predictions):
        return labels

    for metric in ("mae", own, keras.metrics.Mean):
        assert fresh_metric(metric) is metric


def test_a_fresh_metric_has_the_function_and_variables_of_its_own():
    def own(labels, predictions):
        return 3.0 * labels

    metric = keras.metrics.MeanMetricWrapper(own, name="tripled")
    fresh = fresh_metric(metric)
    assert fresh is not metric
    fresh.update_state(tf.constant([2.0, 4.0]), tf.constant([0.0, 0.0]))
    assert (float(fresh.result()), fresh.name) == (9.0, "tripled")
    assert float(metric.result()) == 0.0


def test_a_configuration_refers_to_the_functions_of_lambda_layers():
    layer = keras.layers.Lambda(_twice, name="twice")
    model = keras.Sequential([keras.Input((2,)), layer])
    config, functions = with_live_functions(model.get_config(), [model, layer])
    assert functions == {"twice_function": _twice}
    with keras.utils.custom_object_scope(functions):
        copy = keras.Sequential.from_config(config)
    assert copy.layers[-1].function is _twice
    assert copy.layers[-1] is not layer


def _twice(x):
    return x * 2.0
