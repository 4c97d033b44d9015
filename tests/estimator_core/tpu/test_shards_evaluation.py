"""The metrics and the predictions of the shards of a TPUEstimator."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tpu

tf1 = tf.compat.v1


def model_fn(features, labels, mode, params):
    """prediction = weight * x; the weight is 0 at first, and its gradient is -2 * mean(x * labels)."""
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    prediction = weight * features["x"]
    if mode == est.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": prediction, "x": features["x"]})
    loss = tf.reduce_mean(tf.square(prediction - labels))
    if mode == est.ModeKeys.EVAL:
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, prediction]))
    optimizer = tf1.train.GradientDescentOptimizer(params.get("rate", 0.125))
    reduction = params.get("reduction", tf1.losses.Reduction.MEAN)
    optimizer = tpu.CrossShardOptimizer(optimizer, reduction)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def metric_fn(labels, prediction):
    return {
        "mae": tf1.metrics.mean_absolute_error(labels, prediction),
        "batch_size": tf1.metrics.mean(tf.shape(labels)[0]),
    }


def input_fn(params):
    """x is 1, 2, 3, ... up to 10, labels are twice x."""
    x = np.arange(1, 11, dtype=np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, 2 * x))
    return dataset.batch(params["batch_size"], drop_remainder=True)


def predict_input_fn(params):
    """The last batch is smaller."""
    x = tf.data.Dataset.from_tensor_slices({"x": np.arange(1, 11, dtype=np.float32)})
    return x.batch(params["batch_size"])


@pytest.fixture
def make(tmp_path):
    def make_estimator(model_fn=model_fn, num_shards=2, config=None, **arguments):
        tpu_config = tpu.TPUConfig(num_shards=num_shards, **(config or {}))
        run_config = tpu.RunConfig(tpu_config, model_dir=str(tmp_path / "model"))
        sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
        return tpu.TPUEstimator(model_fn, config=run_config, **{**sizes, **arguments})

    return make_estimator


# Evaluation


@pytest.mark.parametrize("num_shards", [1, 2, 4])
def test_metrics_are_of_all_shards(make, num_shards):
    estimator = make(num_shards=num_shards, params={"rate": 0.0}).train(input_fn, steps=1)
    metrics = estimator.evaluate(input_fn, steps=2)
    assert metrics["batch_size"] == 4  # metric_fn is called with the examples of all shards
    np.testing.assert_allclose(metrics["mae"], 2 * 4.5)
    np.testing.assert_allclose(metrics["loss"], 4 * 204 / 8)  # 1 + 4 + 9 + ... + 64 = 204


def test_evaluation_needs_steps_and_an_input_that_lasts(make):
    estimator = make().train(input_fn, steps=1)
    with pytest.raises(ValueError, match="needs to know its steps"):
        estimator.evaluate(input_fn)
    with pytest.raises(ValueError, match="steps=3, of which 2 were there"):
        estimator.evaluate(input_fn, steps=3)
    # On one device neither is so.
    assert make(eval_on_tpu=False).evaluate(input_fn)["batch_size"] == 4


def test_evaluation_needs_a_batch_size(make):
    estimator = make(eval_batch_size=None, predict_batch_size=None).train(input_fn, steps=1)
    with pytest.raises(ValueError, match="eval_batch_size can't be None"):
        estimator.evaluate(input_fn, steps=1)
    with pytest.raises(ValueError, match="predict_batch_size can't be None"):
        next(estimator.predict(predict_input_fn))


@pytest.mark.parametrize("mode", ["evaluate", "predict"])
def test_a_spec_that_is_not_for_a_tpu_is_refused(make, mode):
    def plain_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec.as_estimator_spec() if mode != est.ModeKeys.TRAIN else spec

    estimator = make(plain_model_fn).train(input_fn, steps=1)
    with pytest.raises(RuntimeError, match="must return a TPUEstimatorSpec in mode"):
        list(estimator.predict(predict_input_fn)) if mode == "predict" else estimator.evaluate(
            input_fn, steps=1
        )


@pytest.mark.parametrize("call", ["eval_metrics", "host_call"])
def test_what_a_host_takes_has_a_batch_dimension(make, call):
    def scalar_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec._replace(**{call: (lambda loss: {}, [spec.loss])})

    estimator = make().train(input_fn, steps=1)
    with pytest.raises(RuntimeError, match=f"All tensors of {call} need a batch dimension"):
        make(scalar_model_fn).evaluate(input_fn, steps=1)
    assert estimator.evaluate(input_fn, steps=1)


# Prediction


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
def test_each_example_has_one_prediction(make, num_shards, config):
    """10 examples, in steps of 4: what fills up the last step is not yielded."""
    estimator = make(num_shards=num_shards, config=config)
    rows = list(estimator.predict(predict_input_fn))
    assert [row["x"] for row in rows] == list(range(1, 11))
    batches = estimator.predict(predict_input_fn, yield_single_examples=False)
    assert [len(batch["x"]) for batch in batches] == [4, 4, 2]


def test_a_model_sees_what_is_padding(make):
    seen = []

    def padding_model_fn(features, labels, mode, params):
        assert set(features) == {"x"}  # who goes through the features does not meet it
        x = features["x"]
        is_padding = features["is_padding"]
        noted = tf1.py_func(lambda p: seen.append(p.tolist()) or 0, [is_padding], tf.int64)
        noted.set_shape([])
        with tf.control_dependencies([noted]):
            predictions = {"y": tf.identity(x), "is_padding": is_padding}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)

    estimator = make(padding_model_fn)
    make().train(input_fn, steps=1)
    rows = list(estimator.predict(predict_input_fn))
    assert [int(row["is_padding"]) for row in rows] == [0] * 10
    assert sorted(seen) == [[0, 0]] * 5 + [[1, 1]]


def test_predictions_of_a_batch_above_its_size(make):
    with pytest.raises(tf.errors.InvalidArgumentError, match="must not be above the 4 examples"):
        list(make().predict(lambda params: predict_input_fn({"batch_size": 5})))


def test_prediction_needs_a_dataset(make):
    with pytest.raises(TypeError, match=r"must return a tf\.data\.Dataset"):
        next(make().predict(lambda params: {"x": tf.ones([4])}))
    with pytest.raises(TypeError, match="batch_axis is not supported"):
        next(make(batch_axis=[0, 0]).predict(predict_input_fn))
