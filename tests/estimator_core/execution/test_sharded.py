"""Training on shards: the state of a single shard, and refused settings."""

import re

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from tests.estimator_core.programs import AfterEachRun, descent, zeros
from tests.estimator_core.shard_programs import input_fn, model_fn, shared_descent


def test_a_model_without_sums_is_refused(make_sharded):
    def plain_model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(zeros("weight") * features["x"])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=descent(loss, 1.0))

    with pytest.raises(ValueError, match="CrossShardOptimizer must be used"):
        make_sharded(plain_model_fn).train(input_fn, steps=1)
    make_sharded(plain_model_fn, num_shards=1).train(input_fn, steps=1)  # there is nothing to sum up


@pytest.mark.parametrize("groups", [None, [[0], [1]]])
def test_a_weight_that_would_differ_from_shard_to_shard_is_refused(make_sharded, groups):
    def mixed_model_fn(features, labels, mode, params):
        weights = [zeros(name) for name in "ab"]
        loss = tf.reduce_mean((weights[0] + weights[1]) * features["x"])
        right = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(1.0))
        wrong = tf1.train.GradientDescentOptimizer(1.0)
        if groups:
            wrong = tpu.CrossShardOptimizer(wrong, group_assignment=groups)
        train_op = tf.group(
            right.minimize(loss, tf1.train.get_global_step(), var_list=weights[:1]),
            wrong.minimize(loss, var_list=weights[1:]),
        )
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    with pytest.raises(ValueError, match=re.escape("variables ['b:0']")):
        make_sharded(mixed_model_fn).train(input_fn, steps=1)


def game_model_fn(features, labels, mode, params):
    """A GAN's two halves: `weight`, which a step trains, and `other`, which a plain optimizer could train."""
    other = zeros("other")
    kept = zeros("kept", trainable=False)
    loss = tf.reduce_mean(tf.square((other + kept) * features["x"] - labels))
    others_step = tf1.train.GradientDescentOptimizer(1.0).minimize(loss, var_list=[other])
    others_step = tf.group(others_step, kept.assign_add(tf.reduce_mean(features["x"])), name="others_step")

    @tf.function
    def in_function():
        other.assign_add(tf.reduce_sum(features["x"]))
        return tf.constant(0.0)

    spec = model_fn(features, labels, mode, params)
    loss, train_op = spec.loss, spec.train_op
    value = in_function()  # not in the step, unless it is a part of the following
    match params.get("runs"):
        case "train_op":
            train_op = tf.group(train_op, others_step)
        case "function":
            train_op = tf.group(train_op, value.op)
        case "loss":
            with tf.control_dependencies([others_step]):
                loss = tf.identity(loss)
    return spec._replace(loss=loss, train_op=train_op)


def test_an_update_that_a_step_does_not_run_may_be_of_one_shard(make_sharded):
    estimator = make_sharded(game_model_fn).train(input_fn, steps=1)
    assert estimator.get_variable_value("other") == estimator.get_variable_value("kept") == 0.0
    # x is 1, 2 | 3, 4, and labels are twice x: the mean gradient is -4 * 30 / 4.
    assert estimator.get_variable_value("weight") == 0.125 * 30


@pytest.mark.parametrize("part", ["train_op", "function", "loss"])
def test_an_update_that_a_step_runs_may_not_be_of_one_shard(make_sharded, part):
    with pytest.raises(ValueError, match=re.escape("variables ['other:0']")):
        make_sharded(game_model_fn, params={"runs": part}).train(input_fn, steps=1)


class RunsAnUpdate(AfterEachRun):
    """Runs an operation after each step, as TF-GAN's RunTrainOpsHook does."""


@pytest.mark.parametrize("is_own", [True, False])
def test_an_update_that_a_hook_may_run_may_not_be_of_one_shard(make_sharded, is_own):
    def hooked_model_fn(features, labels, mode, params):
        spec = game_model_fn(features, labels, mode, params)
        update = tf1.get_default_graph().get_operation_by_name("others_step")
        hook = (
            RunsAnUpdate(lambda session: session.run(update))
            if is_own
            else est.LoggingTensorHook([spec.loss], 1)
        )
        return spec._replace(training_hooks=(hook,))

    estimator = make_sharded(hooked_model_fn)
    if is_own:
        with pytest.raises(ValueError, match=r"may run them: \['RunsAnUpdate'\].*\['other:0'\]"):
            estimator.train(input_fn, steps=1)
    else:
        estimator.train(input_fn, steps=1)
        assert estimator.get_variable_value("other") == 0.0


def test_moving_averages_are_those_of_the_first_shard(make_sharded):
    """Batch normalization: each shard normalizes its own batch; averages are the first one's, as on a TPU."""

    def normalized_model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
        average = tf1.get_variable("average", [], trainable=False)
        mean = tf.reduce_mean(features["x"])
        update = average.assign(mean)
        with tf.control_dependencies([update]):
            loss = tf.reduce_sum(tf.square(weight * (features["x"] - mean)))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, 0.25))

    estimator = make_sharded(normalized_model_fn).train(input_fn, steps=1)
    assert estimator.get_variable_value("average") == 1.5  # of 1 and 2, not of 3 and 4
    # Each shard has 2 * (0.25 + 0.25) = 1 as its gradient; with the mean of all it would be 2 * 5 / 2.
    assert estimator.get_variable_value("weight") == 1.0 - 0.25


def test_a_scaffold_fn_is_called_once(make_sharded):
    calls, assign = [], []

    def scaffold_fn():
        calls.append(tf1.global_variables("weight")[0])
        return tf1.train.Scaffold(init_fn=lambda scaffold, session: session.run(assign[0]))

    def scaffolding_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        assign[:] = [tf1.global_variables("weight")[0].assign(7.0)]
        return spec._replace(scaffold_fn=scaffold_fn)

    estimator = make_sharded(scaffolding_model_fn, params={"rate": 0.0}).train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == 7.0
    assert len(calls) == 1


def test_what_virtual_shards_have_not(make_sharded, tmp_path):
    config = tpu.RunConfig(master="grpc://tpu:8470", model_dir=str(tmp_path / "model"))
    estimator = tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)
    with pytest.raises(RuntimeError, match="leave master"):
        estimator.train(input_fn, steps=1)


def accumulating_model_fn(features, labels, mode, params):
    """Adds up gradients in a variable, as programs did for larger batches, and applies the sum."""
    weight, kept = zeros("weight"), zeros("kept", trainable=False)
    loss = tf.reduce_mean(tf.square(weight * features["x"] - labels))
    (gradient,) = tf.gradients(loss, [weight])
    if params.get("sum_first"):
        gradient = tpu.cross_replica_sum(gradient)
    with tf.control_dependencies([kept.assign_add(gradient)]):
        total = tf.identity(kept.read_value())
    optimizer = tf1.train.GradientDescentOptimizer(0.125)
    if not params.get("sum_first"):
        optimizer = tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.apply_gradients([(total, weight)], tf1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def test_gradients_may_be_kept_only_if_they_are_summed_up_first(make_sharded):
    with pytest.raises(ValueError, match=re.escape("variables ['kept:0']")):
        make_sharded(accumulating_model_fn).train(input_fn, steps=1)
    estimator = make_sharded(accumulating_model_fn, params={"sum_first": True}).train(input_fn, steps=1)
    # -4 * mean(1, 4) = -10 of the first shard, and -4 * mean(9, 16) = -50 of the second.
    assert estimator.get_variable_value("kept") == -60.0
    assert estimator.get_variable_value("weight") == 0.125 * 60


def test_loops_of_tensorflow_1_are_refused(make_sharded):
    def looping_model_fn(features, labels, mode, params):
        was_on = tf1.control_flow_v2_enabled()
        tf1.disable_control_flow_v2()
        try:
            powers = tf.scan(lambda total, x: total + x, features["x"])
        finally:
            if was_on:
                tf1.enable_control_flow_v2()
        return model_fn({"x": powers}, labels, mode, params)

    with pytest.raises(ValueError, match="enable_control_flow_v2"):
        make_sharded(looping_model_fn).train(input_fn, steps=1)
