import keras
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.keras_models.live_objects import fresh_metric, with_live_functions
from tests.estimator_core.keras_models.models import Scaled, batches, functional


@pytest.mark.parametrize("arguments", [{"factor": 3.0}, {"places": 3}])
def test_a_metric_with_less_configuration_than_arguments_is_refused(tmp_path, arguments):
    estimator = est.model_to_estimator(functional(metrics=[Scaled(**arguments)]), model_dir=tmp_path)
    with pytest.raises(ValueError, match=r"get_config\(\) must return all arguments.*Scaled"):
        estimator.evaluate(batches)


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
