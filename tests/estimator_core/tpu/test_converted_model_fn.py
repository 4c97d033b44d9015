"""A model_fn that was not written for a TPU."""

import tensorflow as tf

import estimator_core as est
from estimator_core.tpu.host_estimator import ConvertedModelFn


def test_the_model_gets_the_params_of_its_own_estimator(tmp_path):
    seen = {}

    def model_fn(features, labels, mode, params, config):
        seen.update(params, features=features, labels=labels, mode=mode, config=config)
        return est.EstimatorSpec(mode, predictions=features)

    estimator = est.Estimator(model_fn, str(tmp_path), params={"rate": 0.5})
    converted = ConvertedModelFn(estimator)
    with tf.Graph().as_default():
        x = tf.constant([1.0])
        spec = converted(x, "y", "infer", "a config", {"batch_size": 4, "rate": 7.0})
    assert spec.predictions is x
    assert seen == {
        "rate": 0.5, "features": x, "labels": "y", "mode": "infer", "config": "a config",
    }  # fmt: skip
