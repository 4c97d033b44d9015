import inspect
import itertools

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est

FEATURES = {"x": np.zeros([8, 1], np.float32)}


def input_fn(labels):
    """All examples, in one batch, for ever."""
    return lambda: tf.data.Dataset.from_tensors((FEATURES, np.array(labels))).repeat()


# The constructors of tf.estimator 2.15, arguments in order.
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "BaselineClassifier",
            "model_dir n_classes weight_column label_vocabulary optimizer config loss_reduction",
        ),
        ("BaselineRegressor", "model_dir label_dimension weight_column optimizer config loss_reduction"),
        ("BaselineEstimator", "head model_dir optimizer config"),
    ],
)
def test_constructors_have_the_arguments_of_tf_estimator(name, arguments):
    parameters = inspect.signature(getattr(est, name).__init__).parameters
    assert list(parameters)[1:] == arguments.split()
    assert parameters["optimizer"].default == "Ftrl"


def test_a_classifier_learns_the_shares(tmp_path):
    classifier = est.BaselineClassifier(
        model_dir=str(tmp_path), n_classes=3, label_vocabulary=["a", "b", "c"]
    )
    classifier.train(input_fn(["a"] * 4 + ["b"] * 3 + ["c"]), steps=300)
    row = next(classifier.predict(input_fn(["a"] * 8)))
    np.testing.assert_allclose(row["probabilities"], [4 / 8, 3 / 8, 1 / 8], atol=0.005)
    assert row["classes"].tolist() == [b"a"]
    # Everything is called "a".
    results = classifier.evaluate(input_fn(["a"] * 4 + ["b"] * 4), steps=1)
    assert results["accuracy"] == pytest.approx(0.5)


def test_a_regressor_learns_the_mean(tmp_path):
    regressor = est.BaselineRegressor(model_dir=str(tmp_path))
    regressor.train(input_fn(np.arange(8.0, dtype=np.float32)), steps=400)
    bias = regressor.get_variable_value("baseline/bias")
    np.testing.assert_allclose(bias, [3.5], atol=0.01)  # mean of 0 to 7


def test_one_step_with_an_optimizer_by_name(tmp_path):
    estimator = est.BaselineEstimator(est.RegressionHead(), model_dir=str(tmp_path), optimizer="SGD")
    estimator.train(input_fn(np.full([8], 2.0, np.float32)), steps=1)
    # The slope of (b - 2)^2 at 0 is -4, the learning rate 0.3.
    np.testing.assert_allclose(estimator.get_variable_value("baseline/bias"), [1.2], rtol=1e-6)


def test_the_exported_model_answers(tmp_path):
    regressor = est.BaselineRegressor(model_dir=str(tmp_path), optimizer="SGD")
    regressor.train(input_fn(np.full([8], 2.0, np.float32)), steps=1)
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(
        {"x": tf.io.FixedLenFeature([1], tf.float32)}
    )
    path = regressor.export_saved_model(str(tmp_path / "export"), receiver_fn)
    path = path.decode() if isinstance(path, bytes) else path
    signature = tf.saved_model.load(path).signatures["predict"]
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[9.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    found = signature(examples=tf.constant([example.SerializeToString()] * 3))["predictions"]
    np.testing.assert_allclose(found, [[1.2]] * 3, rtol=1e-6)


def test_predictions_end_with_an_input_of_known_batch_size(tmp_path):
    """Then only a control dependency of the logits needs the input."""
    regressor = est.BaselineRegressor(model_dir=str(tmp_path))
    regressor.train(input_fn(np.ones(8)), steps=1)
    dataset = tf.data.Dataset.from_tensors
    predictions = list(itertools.islice(regressor.predict(lambda: dataset(FEATURES)), 20))
    assert len(predictions) == 8
