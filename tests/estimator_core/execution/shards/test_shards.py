"""The metrics and the predictions of all shards."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from tests.estimator_core.shard_programs import input_fn, model_fn, predict_input_fn


@pytest.mark.sampled(2)
@pytest.mark.parametrize("num_shards", [1, 2, 4])
def test_metrics_are_of_all_shards(make_sharded, num_shards):
    estimator = make_sharded(num_shards=num_shards, params={"rate": 0.0}).train(input_fn, steps=1)
    metrics = estimator.evaluate(input_fn, steps=2)
    assert metrics["batch_size"] == 4  # metric_fn is called with the examples of all shards
    np.testing.assert_allclose(metrics["mae"], 2 * 4.5)
    np.testing.assert_allclose(metrics["loss"], 4 * 204 / 8)  # 1 + 4 + 9 + ... + 64 = 204


@pytest.mark.parametrize(
    "run",
    [
        lambda estimator: estimator.evaluate(input_fn, steps=1),
        lambda estimator: next(estimator.predict(predict_input_fn)),
    ],
    ids=["evaluate", "predict"],
)
def test_a_spec_that_is_not_for_a_tpu_is_refused(make_sharded, run):
    def plain_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec.as_estimator_spec() if mode != est.ModeKeys.TRAIN else spec

    estimator = make_sharded(plain_model_fn).train(input_fn, steps=1)
    with pytest.raises(RuntimeError, match="must return a TPUEstimatorSpec in mode"):
        run(estimator)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("num_shards", [2, 4])
@pytest.mark.parametrize(
    "config",
    [
        {},
        {"per_host_input_for_training": tpu.InputPipelineConfig.PER_HOST_V2},
        {"per_host_input_for_training": tpu.InputPipelineConfig.BROADCAST},
        {"eval_training_input_configuration": tpu.InputPipelineConfig.SLICED},
    ],
)
def test_each_example_has_one_prediction(make_sharded, num_shards, config):
    """10 examples, in steps of 4: the padding of the last step is not yielded."""
    estimator = make_sharded(num_shards=num_shards, config=config)
    assert [row["x"] for row in estimator.predict(predict_input_fn)] == list(range(1, 11))
    batches = estimator.predict(predict_input_fn, yield_single_examples=False)
    assert [len(batch["x"]) for batch in batches] == [4, 4, 2]


def test_a_model_sees_what_is_padding(make_sharded):
    seen = []

    def padding_model_fn(features, labels, mode, params):
        assert set(features) == {"x"}  # who goes through the features does not meet it
        x, is_padding = features["x"], features["is_padding"]
        noted = tf1.py_func(lambda p: seen.append(p.tolist()) or 0, [is_padding], tf.int64)
        noted.set_shape([])
        with tf.control_dependencies([noted]):
            return tpu.TPUEstimatorSpec(mode, {"y": tf.identity(x), "is_padding": is_padding})

    estimator = make_sharded(padding_model_fn)
    make_sharded().train(input_fn, steps=1)
    assert [int(row["is_padding"]) for row in estimator.predict(predict_input_fn)] == [0] * 10
    assert sorted(seen) == [[0, 0]] * 5 + [[1, 1]]


def test_inputs_that_prediction_refuses(make_sharded):
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not be above the 4 examples"):
        list(make_sharded().predict(lambda params: predict_input_fn({"batch_size": 5})))
    with pytest.raises(TypeError, match=r"must return a tf\.data\.Dataset"):
        next(make_sharded().predict(lambda params: {"x": tf.ones([4])}))
    with pytest.raises(TypeError, match="batch_axis is not supported"):
        next(make_sharded(batch_axis=[0, 0]).predict(predict_input_fn))
