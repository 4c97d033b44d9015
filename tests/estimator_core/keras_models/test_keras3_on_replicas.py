import keras
import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.keras_models.models import WEIGHTS, X, Y
from tests.estimator_core.programs import assert_same


def _on_two_devices(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    return est.RunConfig(model_dir=str(tmp_path), train_distribute=strategy, eval_distribute=strategy)


def _one_layer(**compile_args):
    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid", name="out")(inputs))
    model.compile("sgd", "mse", **compile_args)
    return model


def _weighted_batches():
    features = {"features": {"x": X}, "sample_weights": WEIGHTS}
    return tf.data.Dataset.from_tensor_slices((features, Y)).batch(8)


@pytest.mark.more
def test_metrics_count_the_batches_of_all_replicas_as_keras_does(tmp_path):
    metrics = keras.metrics
    plain = [
        "mae",
        "accuracy",
        metrics.AUC(name="auc"),
        metrics.R2Score(name="r2"),
        metrics.MeanIoU(2, name="iou"),
    ]
    plain.append(metrics.F1Score(threshold=0.5, name="f1"))
    weighted = [metrics.MeanAbsoluteError(name="weighted_mae"), metrics.AUC(name="weighted_auc")]
    model = _one_layer(metrics=plain, weighted_metrics=weighted)
    found = est.model_to_estimator(model, config=_on_two_devices(tmp_path)).evaluate(_weighted_batches)
    expected = model.evaluate(X, Y, sample_weight=WEIGHTS, batch_size=8, return_dict=True, verbose=0)
    expected["loss"] = found["loss"]  # Keras' is not the mean of the batches' losses
    assert found.pop("global_step") == 0
    assert_same(found, expected, rtol=1e-5)


class _Counter(keras.metrics.Metric):
    """Counts batches in a variable of its own, which is not made by `add_weight`."""

    def __init__(self, aggregation, name="batches", **kwargs):
        super().__init__(name=name, **kwargs)
        self.aggregation = aggregation
        self.count = keras.Variable(0.0, trainable=False, name="count", aggregation=self.aggregation)

    def get_config(self):
        return {**super().get_config(), "aggregation": self.aggregation}

    def update_state(self, labels, predictions, sample_weight=None):
        self.count.assign_add(1.0)

    def result(self):
        return self.count + 0.0


@pytest.mark.parametrize("aggregation", ["none", "sum"])
def test_a_metric_that_does_not_add_up_over_replicas_is_refused(tmp_path, aggregation):
    model = _one_layer(metrics=[_Counter(aggregation)])
    estimator = est.model_to_estimator(model, config=_on_two_devices(tmp_path))
    with pytest.raises(ValueError, match=r"add_weight\(\).*Received: .*count"):
        estimator.evaluate(_weighted_batches)


@pytest.mark.more
def test_moving_averages_are_the_mean_over_the_replicas(tmp_path):
    inputs = keras.Input((4,), name="x")
    normalized = keras.layers.BatchNormalization(momentum=0.75, name="norm")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1, name="out")(normalized))
    model.compile("sgd", "mse")
    estimator = est.model_to_estimator(model, config=_on_two_devices(tmp_path), checkpoint_format="saver")
    estimator.train(lambda: tf.data.Dataset.from_tensor_slices((X[:32], Y[:32])).batch(8))
    # Each replica has two of the four batches: 0.75 (0.25 a) + 0.25 b, from 0 and 1.
    batches = X[:32].reshape(4, 8, 4)
    first, second = (each.reshape(2, 2, 4).mean(axis=1) for each in _moments(batches))
    mean = 0.1875 * first[0] + 0.25 * first[1]
    variance = 0.5625 + 0.1875 * second[0] + 0.25 * second[1]
    found = [estimator.get_variable_value(f"norm/moving_{n}") for n in ("mean", "variance")]
    np.testing.assert_allclose(found, [mean, variance], rtol=1e-5)


def _moments(batches):
    return batches.mean(axis=1), batches.var(axis=1)
