"""TPUEstimators of Estimators that were not written for TPUs."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from tests.estimator_core.programs import descent, zeros
from tests.estimator_core.shard_programs import shared_descent

X = np.arange(1, 11, dtype=np.float32)


def model_fn(features, labels, mode, params):
    prediction = zeros("weight") * features["x"]
    if mode == est.ModeKeys.PREDICT:
        return est.EstimatorSpec(mode, {"y": prediction, "x": features["x"]})
    loss = tf.reduce_mean(tf.square(prediction - labels))
    if mode == est.ModeKeys.EVAL:
        metrics = {
            "batches": tf1.metrics.mean(tf.shape(labels)[0]),
            # Each update replaces the values before: the shards must come one after the other.
            "last": last_value(labels),
        }
        return est.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    assert set(params) == {"rate"}  # its own alone
    return est.EstimatorSpec(mode, loss=loss, train_op=descent(loss, params["rate"]))


def last_value(labels):
    last = zeros("last", [2], collections=[tf1.GraphKeys.LOCAL_VARIABLES])
    # (the last one before, the last one now)
    return last.value(), last.assign(tf.stack([last.read_value()[1], labels[-1]]))


def input_fn(size=3, drop_remainder=False):
    """Batches of 3, a size that the graph does not know."""
    return tf.data.Dataset.from_tensor_slices(({"x": X}, 2 * X)).batch(size, drop_remainder)


@pytest.fixture
def plain(tmp_path):
    return est.Estimator(model_fn, str(tmp_path / "model"), params={"rate": 0.125})


def converted(estimator, num_shards=2, **arguments):
    sizes = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}
    config = tpu.TPUConfig(num_shards=num_shards)
    return tpu.to_tpu_estimator(estimator, **{"config": config, **sizes, **arguments})


def test_an_input_fn_without_params_gets_the_batch_sizes(plain):
    estimator = converted(plain)
    assert estimator.model_dir == plain.model_dir
    estimator.train(input_fn, steps=1)
    # The gradient is -4 * mean(1, 4, 9, 16) = -30.
    assert estimator.get_variable_value("weight") == 0.125 * 30
    assert estimator.evaluate(input_fn, steps=2)["batches"] == 2  # of a shard
    assert [row["x"] for row in estimator.predict(input_fn)] == X.tolist()


BROADCAST = tpu.InputPipelineConfig.BROADCAST


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("config", "last"),
    [
        # The labels of 8 examples: the last shards have 14 and 16.
        ({"num_shards": 4}, [14.0, 16.0]),
        # The last labels of the batches are 8 and 16; a second update in a step would find its own before.
        ({"num_shards": 2, "per_host_input_for_training": BROADCAST}, [8.0, 16.0]),
    ],
    ids=["shards update metrics one after the other", "a batch that all shards have counts once"],
)
def test_updates_of_metrics(plain, config, last):
    estimator = converted(plain, config=tpu.TPUConfig(**config)).train(input_fn, steps=1)
    for _ in range(3):
        assert estimator.evaluate(input_fn, steps=2)["last"].tolist() == last


def test_an_input_fn_with_params(plain):
    estimator = converted(plain).train(lambda params: input_fn(params["batch_size"], True), steps=2)
    assert estimator.get_variable_value("global_step") == 2


def weight_after_a_step(plain, input_fn, num_shards, kind=True, **arguments):
    config = tpu.TPUConfig(num_shards=num_shards, per_host_input_for_training=kind)
    estimator = converted(plain, config=config, **arguments)
    return estimator.train(input_fn, steps=1).get_variable_value("weight")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["PER_HOST_V1", "PER_SHARD_V1", "PER_HOST_V2"])
@pytest.mark.parametrize("size", [2, 4, 5])
def test_batches_of_another_static_size_are_made_anew(plain, kind, size):
    """A step has 4 examples on the 2 shards together, however many input_fn batches."""
    kind = getattr(tpu.InputPipelineConfig, kind)
    weight = weight_after_a_step(plain, lambda: input_fn(size, True), 2, kind=kind)
    if kind is tpu.InputPipelineConfig.PER_SHARD_V1:
        # Each shard has the first 2 examples: -4 * mean(1, 4) = -10.
        assert weight == 0.125 * 10
    else:
        assert weight == 0.125 * 30


def test_tensors_of_another_size_are_refused(plain):
    def batch(size):
        return lambda: ({"x": tf.constant(X[:size])}, tf.constant(2 * X[:size]))

    with pytest.raises(ValueError, match=r"must have 4 examples.* Received: batches of \[8\]"):
        weight_after_a_step(plain, batch(8), 2)
    assert weight_after_a_step(plain, batch(4), 2) == 0.125 * 30


def test_batches_that_do_not_lie_on_the_first_dimension(tmp_path):
    """Features are [3, examples]."""

    def with_columns(features, labels):
        return model_fn({"x": features["x"][0]}, labels, "train", {"rate": 0.125})

    def batches(size):
        batch = {"x": np.stack([X[:size]] * 3)}, 2 * X[:size]
        return lambda: tf.data.Dataset.from_tensors(batch).repeat()

    plain = est.Estimator(with_columns, str(tmp_path))
    assert weight_after_a_step(plain, batches(4), 2, batch_axis=(1, 0)) == 0.125 * 30
    with pytest.raises(ValueError, match=r"batches of \[8\], batch_axis=\(1, 0\)"):
        weight_after_a_step(plain, batches(8), 2, batch_axis=(1, 0))


@pytest.mark.parametrize("use_tpu", [True, False])
def test_an_input_fn_finds_the_params_of_the_estimator(tmp_path, use_tpu):
    seen = []

    def tpu_input_fn(params):
        seen.append(params["batch_size"])
        dataset = tf.data.Dataset.from_tensor_slices(({"x": X}, params["factor"] * X))
        return dataset.batch(params["batch_size"], drop_remainder=True)

    def own_model_fn(features, labels, mode, params):
        seen.append(params["batch_size"])
        return model_fn(features, labels, mode, {"rate": params["rate"]})

    params = {"rate": 0.125, "factor": 4.0, "batch_size": 3, "context": "its own"}
    plain = est.Estimator(own_model_fn, str(tmp_path), params=params)
    estimator = converted(plain, use_tpu=use_tpu, eval_batch_size=None, eval_on_tpu=False)
    estimator.train(tpu_input_fn, steps=1)
    # Twice the gradient of labels that are 2 * x.
    assert estimator.get_variable_value("weight") == 2 * 0.125 * 30
    assert seen == [4, 3]  # model_fn finds its own
    estimator.evaluate(tpu_input_fn, steps=1)
    assert seen == [4, 3, 3, 3]  # no other size was given
    assert plain.params == params


def test_a_directory_of_its_own(plain, tmp_path):
    other = str(tmp_path / "other")
    assert converted(plain, model_dir=other).model_dir == other
    config = tpu.RunConfig(tpu.TPUConfig(num_shards=2), model_dir=other)
    assert converted(plain, config=config).model_dir == other


def test_settings_are_kept(tmp_path):
    config = est.RunConfig(str(tmp_path), tf_random_seed=5, save_checkpoints_steps=7)
    estimator = converted(est.Estimator(model_fn, config=config, params={"rate": 0.1}))
    assert estimator.config.tf_random_seed == 5
    assert (estimator.config.save_checkpoints_steps, estimator.config.save_checkpoints_secs) == (7, None)


def test_one_device_takes_the_batch_of_input_fn(plain):
    estimator = converted(plain, use_tpu=False).train(input_fn, steps=1)
    # -4 * mean(1, 4, 9): input_fn's own batch.
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 0.125 * 4 * 14 / 3)


def test_what_is_no_estimator(plain):
    with pytest.raises(TypeError, match="must be an Estimator"):
        converted(model_fn)
    with pytest.raises(TypeError, match="and not a TPUEstimator"):
        converted(converted(plain))


def test_an_estimator_that_has_replicas_already(tmp_path):
    config = est.RunConfig(str(tmp_path), train_distribute=tf.distribute.OneDeviceStrategy("/cpu:0"))
    with pytest.raises(ValueError, match="train_distribute"):
        converted(est.Estimator(model_fn, config=config, params={"rate": 0.1}))


def test_a_cross_shard_optimizer_averages_once(tmp_path):
    """Its model_fn may be written for TPUs."""

    def wrapped_model_fn(features, labels, mode):
        loss = tf.reduce_mean(tf.square(zeros("weight") * features["x"] - labels))
        return est.EstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, 0.125))

    estimator = converted(est.Estimator(wrapped_model_fn, str(tmp_path)), num_shards=4)
    assert estimator.train(input_fn, steps=1).get_variable_value("weight") == 0.125 * 30


def test_an_update_that_no_optimizer_makes_is_refused(tmp_path):
    def own_model_fn(features, labels, mode):
        weight, right = zeros("weight"), zeros("right")
        loss = tf.reduce_mean((weight + right) * features["x"])
        (gradient,) = tf.gradients(loss, weight)
        optimizer = tf1.train.GradientDescentOptimizer(1.0)
        others_step = optimizer.minimize(loss, tf1.train.get_global_step(), [right])
        train_op = tf.group(weight.assign_sub(gradient), others_step)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = converted(est.Estimator(own_model_fn, str(tmp_path)))
    with pytest.raises(ValueError, match=re.escape("variables ['weight:0']")):
        estimator.train(input_fn, steps=1)


def test_linear_sdca_is_refused(tmp_path):
    columns = [tf.feature_column.numeric_column("x")]
    linear = est.LinearRegressor(columns, str(tmp_path), optimizer=est.experimental.LinearSDCA("id"))

    def with_ids():
        features = {"x": X[:8], "id": tf.as_string(tf.range(8))}
        return tf.data.Dataset.from_tensors((features, X[:8])).repeat()

    with pytest.raises(ValueError, match="LinearSDCA can't be split"):
        converted(linear, train_batch_size=8).train(with_ids, steps=1)


def test_gradients_that_are_applied_on_a_condition_are_refused(tmp_path):
    """Gradients of every second step, say, differ from shard to shard."""

    def conditional_model_fn(features, labels, mode):
        weight = zeros("weight")
        loss = tf.reduce_mean(tf.square(weight * features["x"] - labels))
        step = tf1.train.get_or_create_global_step()
        gradient = tf.gradients(loss, weight)[0]
        optimizer = tf1.train.GradientDescentOptimizer(0.125)

        def apply():
            with tf.control_dependencies([optimizer.apply_gradients([(gradient, weight)])]):
                return tf.constant(True)

        done = tf.cond(tf.equal(step % 2, 1), apply, lambda: tf.constant(False))
        with tf.control_dependencies([done]):
            train_op = step.assign_add(1).op
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = converted(est.Estimator(conditional_model_fn, str(tmp_path / "model")))
    with pytest.raises(ValueError, match=r"apply_gradients or minimize outside of them"):
        estimator.train(input_fn, steps=2)
