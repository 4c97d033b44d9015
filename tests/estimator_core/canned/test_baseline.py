import inspect
import itertools

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import example

FEATURES = {"x": np.zeros([8, 1], np.float32)}


def input_fn(labels):
    """All examples, in one batch, for ever."""
    return lambda: tf.data.Dataset.from_tensors((FEATURES, np.array(labels))).repeat()


# The constructors of tf.estimator 2.15, arguments in order.
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("BaselineClassifier",
         "model_dir n_classes weight_column label_vocabulary optimizer config loss_reduction"),
        ("BaselineRegressor", "model_dir label_dimension weight_column optimizer config loss_reduction"),
        ("BaselineEstimator", "head model_dir optimizer config"),
    ],
)  # fmt: skip
def test_constructors_have_the_arguments_of_tf_estimator(name, arguments):
    parameters = inspect.signature(getattr(est, name).__init__).parameters
    assert list(parameters)[1:] == arguments.split()
    assert parameters["optimizer"].default == "Ftrl"


def test_a_classifier_learns_the_shares(tmp_path):
    settings = {"n_classes": 3, "label_vocabulary": ["a", "b", "c"]}
    classifier = est.BaselineClassifier(model_dir=str(tmp_path), **settings)
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


def test_one_step_with_an_optimizer_by_name_and_the_exported_model_answers(tmp_path):
    estimator = est.BaselineEstimator(est.RegressionHead(), model_dir=str(tmp_path), optimizer="SGD")
    estimator.train(input_fn(np.full([8], 2.0, np.float32)), steps=1)
    # The slope of (b - 2)^2 at 0 is -4, the learning rate 0.3.
    np.testing.assert_allclose(estimator.get_variable_value("baseline/bias"), [1.2], rtol=1e-6)
    spec = {"x": tf.io.FixedLenFeature([1], tf.float32)}
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    signature = tf.saved_model.load(path).signatures["predict"]
    found = signature(examples=tf.constant([example(x=9.0)] * 3))["predictions"]
    np.testing.assert_allclose(found, [[1.2]] * 3, rtol=1e-6)
    # With a known batch size, only a control dependency of the logits needs the input.
    dataset = tf.data.Dataset.from_tensors
    assert len(list(itertools.islice(estimator.predict(lambda: dataset(FEATURES)), 20))) == 8
