"""Properties of v1 that the comparison with the reference (tests/oracle/programs/v1.py) does not show."""

import functools
import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import v1

SIZE = tf.feature_column.numeric_column("size")
KIND = tf.feature_column.categorical_column_with_identity("kind", 5)


def input_fn():
    features = {"size": [[1.0], [2.0], [3.0], [4.0]], "kind": [[0], [1], [2], [4]]}
    return tf.data.Dataset.from_tensors((features, [[0.0], [1.0], [1.0], [0.0]])).repeat(3)


def make_dnn(**kwargs):
    return v1.DNNEstimator(est.RegressionHead(), [2], [SIZE], **kwargs)


def make_linear(**kwargs):
    return v1.LinearEstimator(est.RegressionHead(), [SIZE, KIND], **kwargs)


@pytest.mark.more
@pytest.mark.parametrize("make", [make_dnn, make_linear])
@pytest.mark.parametrize("optimizer", ["Adam", lambda: tf1.train.AdamOptimizer(0.1)])
def test_heads_of_ones_own_train_and_continue(make, optimizer, tmp_path):
    """The reference refuses all optimizers for these two."""
    estimator = make(optimizer=optimizer, model_dir=str(tmp_path)).train(input_fn)
    before = estimator.evaluate(input_fn)["loss"]
    again = make(optimizer=optimizer, model_dir=str(tmp_path))
    assert again.evaluate(input_fn)["loss"] == pytest.approx(before)
    again.train(input_fn)
    assert again.get_variable_value("global_step") == 6
    assert any(name.endswith("/Adam_1") for name in again.get_variable_names())


@pytest.mark.more
def test_default_learning_rates(tmp_path):
    """Each class's default optimizer moves a bias from 0 by its learning rate, or by the given number."""

    columns = [tf.feature_column.numeric_column(f"size{i}") for i in range(36)]

    def many_columns():
        return tf.data.Dataset.from_tensors(({column.key: [[1.0]] for column in columns}, [[1.0]]))

    combined = functools.partial(
        v1.DNNLinearCombinedRegressor,
        linear_feature_columns=[KIND],
        linear_optimizer="Adam",
        dnn_feature_columns=[SIZE],
        dnn_optimizer="Adam",
        dnn_hidden_units=[2],
    )
    linear = functools.partial(v1.LinearRegressor, optimizer="Adam")
    linear_bias, dnn_bias = "linear/linear_model/bias_weights", "dnn/logits/bias"
    # Adam's first step is the learning rate, whatever the gradient.
    for number, (make, examples, rates) in enumerate(
        [
            (functools.partial(linear, [SIZE, KIND]), input_fn, {linear_bias: 0.2}),
            (functools.partial(linear, columns), many_columns, {linear_bias: 0.2}),
            (functools.partial(v1.DNNRegressor, [2], [SIZE], optimizer="Adam"), input_fn, {dnn_bias: 0.05}),
            (functools.partial(v1.BaselineRegressor, optimizer="Adam"), input_fn, {"baseline/bias": 0.3}),
            (combined, input_fn, {linear_bias: 0.005, dnn_bias: 0.001}),
        ]
    ):
        estimator = make(model_dir=str(tmp_path / str(number))).train(examples, steps=1)
        for name, rate in rates.items():
            assert np.abs(estimator.get_variable_value(name)) == pytest.approx([rate], rel=1e-4)


def test_parameter_servers_split_large_variables(as_task):
    """One slice for every 64 MiB begun, of a table of 40, 80 and 400 MB, and no more than servers."""
    as_task("chief", tasks={"chief": ["a:1"], "ps": ["b:1", "c:1", "d:1"], "worker": ["e:1"]})
    config = est.RunConfig()
    for rows, parts in ((10_000_000, 1), (20_000_000, 2), (100_000_000, 3)):
        column = tf.feature_column.categorical_column_with_identity("kind", rows)
        estimator = v1.LinearRegressor([column], config=config)
        with tf.Graph().as_default():
            tf1.train.create_global_step()
            estimator.model_fn({"kind": tf.constant([[1], [2]])}, None, "infer", config)
            names = [variable.op.name for variable in tf1.global_variables()]
        assert [name for name in names if "kind/weights" in name] == [
            f"linear/linear_model/kind/weights/part_{part}" for part in range(parts)
        ]


@pytest.mark.parametrize("make", [v1.LinearClassifier, v1.BaselineClassifier, v1.DNNClassifier])
def test_the_default_loss_is_the_sum(make):
    assert inspect.signature(make).parameters["loss_reduction"].default == tf1.losses.Reduction.SUM


@pytest.mark.more
def test_linear_sdca_reports_the_summed_loss(tmp_path):
    """The loss that v1 reports is the sum over a batch, here of four examples."""

    def examples():
        features = {"size": [[-2.0], [-1.0], [1.0], [2.0]], "id": [["a"], ["b"], ["c"], ["d"]]}
        return tf.data.Dataset.from_tensors((features, [[0.0], [0.0], [1.0], [1.0]])).repeat(20)

    classifier = v1.LinearClassifier(
        [SIZE],
        model_dir=str(tmp_path),
        optimizer=v1.experimental.LinearSDCA("id", symmetric_l2_regularization=0.01),
    ).train(examples)
    metrics = classifier.evaluate(examples)
    assert metrics["accuracy"] == 1.0
    assert metrics["loss"] == pytest.approx(4.0 * metrics["average_loss"])


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"Unsupported optimizer name.*\['Adagrad'"):
        v1.LinearRegressor([SIZE], optimizer="Adagard")
    with pytest.raises(ValueError, match="Invalid loss_reduction"):
        v1.LinearRegressor([SIZE], loss_reduction="none")
    with pytest.raises(ValueError, match="n_classes must be at least 2"):
        v1.DNNClassifier([2], [SIZE], n_classes=1)
    with pytest.raises(ValueError, match="dnn_hidden_units must be defined"):
        v1.DNNLinearCombinedClassifier(dnn_feature_columns=[SIZE])
    with pytest.raises(ValueError, match="Either linear_feature_columns or dnn"):
        v1.DNNLinearCombinedClassifier()
    with pytest.raises(ValueError, match="config must be an instance of RunConfig"):
        v1.DNNRegressor([2], [SIZE], config=3)
    with pytest.raises(TypeError, match="label_vocabulary should be a list"):  # ValueError in v2
        v1.LinearClassifier([SIZE], label_vocabulary="ab")


def test_export_savedmodel_writes_a_model_that_answers(tmp_path):
    estimator = v1.Estimator(v1.BaselineRegressor().model_fn, model_dir=str(tmp_path / "model"))
    estimator.train(input_fn)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"size": tf.TensorSpec([None, 1])})
    path = estimator.export_savedmodel(str(tmp_path / "export"), receiver_fn, strip_default_attrs=True)
    served = tf.saved_model.load(path.decode()).signatures["predict"](size=tf.zeros([1, 1]))
    np.testing.assert_allclose(served["predictions"], [estimator.get_variable_value("baseline/bias")])


def test_canned_estimators_are_estimators():
    assert isinstance(v1.BaselineRegressor(), est.Estimator)
    assert isinstance(v1.BaselineRegressor(), v1.Estimator)
    assert isinstance(est.BaselineRegressor(), v1.Estimator)
