import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import batch_of

SIZE = tf.feature_column.numeric_column("size")


def variables():
    return {variable.op.name: variable.shape.as_list() for variable in tf1.global_variables()}


def test_dnn_variables_are_in_the_current_scope():
    """Names as `tf.compat.v1.estimator.experimental.dnn_logit_fn_builder` makes them in 2.15."""
    kind = tf.feature_column.categorical_column_with_identity("kind", 3)
    columns = [SIZE, tf.feature_column.embedding_column(kind, 2)]
    logit_fn = est.experimental.dnn_logit_fn_builder(
        2, [4], columns, tf.nn.relu, 0.5, tf1.fixed_size_partitioner(2), True
    )
    with tf.Graph().as_default():
        features = {"size": tf.zeros([5, 1]), "kind": tf.zeros([5, 1], tf.int64)}
        assert logit_fn(features=features, mode="eval").shape.as_list() == [5, 2]
        embeddings = "input_from_feature_columns/input_layer/kind_embedding/embedding_weights"
        assert variables() == {
            f"{embeddings}/part_0": [2, 2],
            f"{embeddings}/part_1": [1, 2],
            "hiddenlayer_0/kernel": [3, 4],
            "hiddenlayer_0/bias": [4],
            "hiddenlayer_0/batchnorm_0/gamma": [4],
            "hiddenlayer_0/batchnorm_0/beta": [4],
            "hiddenlayer_0/batchnorm_0/moving_mean": [4],
            "hiddenlayer_0/batchnorm_0/moving_variance": [4],
            "logits/kernel": [4, 2],
            "logits/bias": [2],
        }


def test_linear_takes_features_alone(graph):
    logit_fn = est.experimental.linear_logit_fn_builder(1, [SIZE])
    with tf1.variable_scope("mine"):
        logits = logit_fn(features={"size": tf.constant([[2.0], [3.0]])})
    assert variables() == {
        "mine/linear_model/size/weights": [1, 1],
        "mine/linear_model/bias_weights": [1],
    }
    weight, bias = tf1.global_variables()
    with tf1.Session() as session:
        session.run([weight.assign([[10.0]]), bias.assign([1.0])])
        np.testing.assert_allclose(session.run(logits), [[21.0], [31.0]])


def test_call_logit_fn_passes_what_is_asked_for():
    def logit_fn(features, params):
        return features * params["factor"]

    call = est.experimental.call_logit_fn
    assert call(logit_fn, tf.constant([2.0]), "train", {"factor": 3.0}, None).numpy() == [6.0]
    assert call(lambda features: {"a": features}, tf.constant([2.0]), "train", {}, None).keys() == {"a"}
    with pytest.raises(ValueError, match=r"\[1\]"):
        call(lambda features: [1], None, "train", {}, None)


def test_a_model_fn_of_a_head_and_a_logit_fn(tmp_path):
    def model_fn(features, labels, mode, config):
        head = est.RegressionHead()
        logit_fn = est.experimental.linear_logit_fn_builder(head.logits_dimension, [SIZE])
        logits = est.experimental.call_logit_fn(logit_fn, features, mode, None, config)
        return head.create_estimator_spec(features, mode, logits, labels, optimizer="SGD")

    input_fn = batch_of({"size": [1.0]}, [3.0], repeat=200)
    estimator = est.Estimator(model_fn, model_dir=str(tmp_path)).train(input_fn)
    # The error shrinks by 1 - 2 * 0.01 * 2 (weight and bias) a step: 3 * 0.96^200 = 0.0009.
    prediction = next(estimator.predict(input_fn))["predictions"]
    np.testing.assert_allclose(prediction, [3.0 - 3.0 * 0.96**200], rtol=1e-5)
