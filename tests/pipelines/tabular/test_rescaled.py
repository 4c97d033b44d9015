import numpy as np
import pytest
import tensorflow as tf

import estimator_core
from pipelines.tabular.estimators import rescaled

MEAN, STDDEV = 5_000.0, 300.0


@pytest.fixture(scope="module")
def data():
    x = np.linspace(-1.7, 1.7, 128, dtype=np.float32)
    return x, (MEAN + STDDEV * x).astype(np.float32)


def input_fn(data, repeat):
    x, y = data
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(128)
    return dataset.repeat() if repeat else dataset


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    model_dir = str(tmp_path_factory.mktemp("model"))
    columns = [tf.feature_column.numeric_column("x")]
    regressor = estimator_core.DNNLinearCombinedRegressor(
        model_dir=model_dir,
        linear_feature_columns=columns,
        linear_optimizer=tf.keras.optimizers.Adam(0.1),
        dnn_feature_columns=columns,
        dnn_hidden_units=[4],
        dnn_optimizer=tf.keras.optimizers.Adam(0.01),
        config=estimator_core.RunConfig(model_dir=model_dir, tf_random_seed=1),
    )
    estimator = rescaled(regressor, mean=MEAN, stddev=STDDEV)
    estimator.train(lambda: input_fn(data, repeat=True), max_steps=300)
    return estimator


def test_predictions_and_metrics_are_in_the_units_of_the_label(trained, data):
    predictions = [item["predictions"][0] for item in trained.predict(lambda: input_fn(data, False))]
    # A line: the linear part alone can learn it. The labels lie 1,000 apart.
    assert np.max(np.abs(np.array(predictions) - data[1])) < 30
    metrics = trained.evaluate(lambda: input_fn(data, repeat=False))
    expected = np.mean((np.array(predictions, np.float64) - data[1]) ** 2)
    assert metrics["average_loss"] == pytest.approx(expected, rel=1e-2)
    assert metrics["label/mean"] == pytest.approx(MEAN, rel=1e-5)
    assert metrics["prediction/mean"] == pytest.approx(np.mean(predictions), rel=1e-5)


def test_exported_signatures_are_in_the_units_of_the_label(trained, data, tmp_path):
    receiver = estimator_core.export.build_parsing_serving_input_receiver_fn(
        {"x": tf.io.FixedLenFeature([], tf.float32)}
    )
    model = tf.saved_model.load(trained.export_saved_model(str(tmp_path), receiver))
    features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))}
    serialized = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    outputs = model.signatures["serving_default"](inputs=tf.constant([serialized]))["outputs"]
    assert outputs.numpy()[0, 0] == pytest.approx(MEAN + STDDEV, abs=30)
    named = model.signatures["predict"](examples=tf.constant([serialized]))["predictions"]
    assert named.numpy()[0, 0] == pytest.approx(outputs.numpy()[0, 0])
