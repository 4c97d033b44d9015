"""The names of variables are those of tf.estimator 2.15."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core
from estimator_core.installation import old_head_attributes, old_heads, old_model_fns
from tests.estimator_core.programs import assert_same, batch_of, values_of

COLUMNS = (tf.feature_column.numeric_column("x"),)
X = np.array([[1.0], [2.0], [4.0], [8.0]], np.float32)
Y = np.array([[0], [0], [1], [1]])


input_fn = batch_of({"x": X}, Y, repeat=10)


def trained(estimator):
    """Returns the metrics and the variables after ten steps."""
    return estimator.train(input_fn).evaluate(input_fn, steps=1), values_of(estimator)


def config():
    return estimator_core.RunConfig(tf_random_seed=3)


def old_head():
    return old_heads._binary_logistic_or_multi_class_head(2, None, None, "weighted_sum")


def old_dnn(features, labels, mode, config):
    arguments = features, labels, mode, old_head(), [3], COLUMNS
    return old_model_fns._dnn_model_fn(*arguments, optimizer="Adam", config=config)


def new_dnn(features, labels, mode):
    head = estimator_core.BinaryClassHead()
    return old_model_fns.dnn_model_fn_v2(features, labels, mode, head, [3], COLUMNS, "Adam")


def old_linear(features, labels, mode, config):
    arguments = features, labels, mode, old_head(), COLUMNS, "Ftrl"
    return old_model_fns._linear_model_fn(*arguments, partitioner=None, config=config)


def new_linear(features, labels, mode, config):
    head = estimator_core.BinaryClassHead()
    return old_model_fns._linear_model_fn_v2(features, labels, mode, head, COLUMNS, "Ftrl", config)


@pytest.mark.more
@pytest.mark.parametrize(
    ("model_fn", "canned"),
    [
        (old_dnn, functools.partial(estimator_core.v1.DNNClassifier, [3], COLUMNS, optimizer="Adam")),
        (new_dnn, functools.partial(estimator_core.DNNClassifier, [3], COLUMNS, optimizer="Adam")),
        (old_linear, functools.partial(estimator_core.v1.LinearClassifier, COLUMNS)),
        (new_linear, functools.partial(estimator_core.LinearClassifier, COLUMNS)),
    ],
)
def test_a_model_fn_trains_like_the_canned_model(model_fn, canned):
    metrics, variables = trained(estimator_core.Estimator(model_fn, config=config()))
    expected_metrics, expected = trained(canned(config=config()))
    assert_same(variables, expected, rtol=1e-6)
    assert metrics == pytest.approx(expected_metrics, rel=1e-6)


def test_on_a_tpu_variables_are_whole_and_the_spec_is_one_of_tpus(graph):
    arguments = {"hidden_units": [2], "feature_columns": COLUMNS, "use_tpu": True}
    head = old_heads._RegressionHeadWithMeanSquaredErrorLoss(1)
    tf1.train.get_or_create_global_step()
    features, labels = {"x": tf.constant(X)}, tf.constant(Y)
    spec = old_model_fns._dnn_model_fn(features, labels, "train", head, **arguments)
    names = [variable.op.name for variable in tf1.trainable_variables()]
    multi_head = estimator_core.MultiHead([estimator_core.RegressionHead(name="a")])
    with pytest.raises(ValueError, match="to_tpu_estimator"):
        old_model_fns.dnn_model_fn_v2(features, labels, "train", multi_head, **arguments)
    assert isinstance(spec, estimator_core.tpu.TPUEstimatorSpec)
    assert names == [
        f"dnn/{layer}/{part}" for layer in ("hiddenlayer_0", "logits") for part in ("kernel", "bias")
    ]


def test_what_sdca_can_train():
    check = old_model_fns._validate_linear_sdca_optimizer_for_linear_classifier
    sdca = estimator_core.experimental.LinearSDCA("id")
    check(COLUMNS, 2, sdca, "sum")
    check(COLUMNS, 3, "Ftrl", "mean")
    with pytest.raises(ValueError, match="multi-class"):
        check(COLUMNS, 3, sdca, "sum")
    with pytest.raises(ValueError, match="sparse_combiner"):
        check(COLUMNS, 2, sdca, "mean")


def test_a_builder_of_logits_without_batch_norm(graph):
    logit_fn = old_model_fns._dnn_logit_fn_builder(2, [3], COLUMNS, tf.nn.relu, None, None)
    assert logit_fn(features={"x": tf.constant(X)}, mode="train").shape == [4, 2]


def test_a_head_of_tensorflow_2_makes_a_spec_of_tpus(graph):
    old_head_attributes.provide_attributes()
    tf1.train.get_or_create_global_step()
    batch = {"x": tf.constant(X)}, tf.constant(Y), "eval"
    head = estimator_core.BinaryClassHead()
    spec = old_model_fns.dnn_model_fn_v2(*batch, head, [2], COLUMNS, use_tpu=True)
    assert isinstance(spec, estimator_core.tpu.TPUEstimatorSpec)
    assert "auc" in spec.as_estimator_spec().eval_metric_ops
