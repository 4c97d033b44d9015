"""What the shards of a TPUEstimator do together in training."""

import re

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tpu
from tests.oracle import observe

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


# Sums


@pytest.mark.parametrize(
    ("reduction", "weight"),
    [
        # The gradients of the shards are -4 * mean(1, 4) = -10 and -4 * mean(9, 16) = -50.
        (tf1.losses.Reduction.MEAN, 0.125 * 30),
        (tf1.losses.Reduction.SUM, 0.125 * 60),
    ],
)
def test_a_cross_shard_optimizer_takes_the_mean_or_the_sum(make, reduction, weight):
    losses = []

    class Note(tf1.train.SessionRunHook):
        def before_run(self, run_context):
            graph = run_context.session.graph
            return tf1.train.SessionRunArgs(graph.get_collection(tf1.GraphKeys.LOSSES)[0])

        def after_run(self, run_context, run_values):
            losses.append(run_values.results)

    estimator = make(params={"reduction": reduction}).train(input_fn, [Note()], steps=1)
    assert estimator.get_variable_value("weight") == weight
    assert losses == [(4 + 16 + 36 + 64) / 4]  # the mean over the shards


def summed(value, groups=None):
    """What two steps of training on 4 shards see of a sum over shards of 1, 2, 3 and 4."""
    seen = []

    def summing_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        total = tpu.cross_replica_sum(value(features["x"]), groups)
        note = (
            lambda total: tf1.py_func(lambda t: seen.append(t.tolist()) or 0, [total], tf.int64),
            [total],
        )
        return spec._replace(host_call=note)

    return summing_model_fn, seen


def test_sums_of_any_value(make):
    summing_model_fn, seen = summed(lambda x: x)
    make(summing_model_fn, num_shards=4).train(input_fn, steps=2)
    assert seen == [[10.0] * 4, [26.0] * 4]


def test_sums_in_groups(make):
    summing_model_fn, seen = summed(lambda x: x, [[0, 2], [1, 3]])
    make(summing_model_fn, num_shards=4).train(input_fn, steps=1)
    assert seen == [[4.0, 6.0, 4.0, 6.0]]


def test_sums_of_sums(make):
    def value(x):
        return x - tpu.cross_replica_sum(x) / 4

    summing_model_fn, seen = summed(value)
    make(summing_model_fn, num_shards=4).train(input_fn, steps=1)
    np.testing.assert_allclose(seen, [[0.0] * 4])


def test_groups_that_are_none(make):
    summing_model_fn, _ = summed(lambda x: x, [[0, 1]])
    with pytest.raises(ValueError, match="each of the shards 0 to 3 in one group"):
        make(summing_model_fn, num_shards=4).train(input_fn, steps=1)


def test_the_gradient_of_a_sum_is_the_sum_of_gradients(make):
    """The loss of shard k is k * (sum of weight * x_k): the weight's gradient is (1 + 2) * (1 + 2)."""

    def sum_model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        x = tf.reduce_sum(features["x"])
        loss = x * tpu.cross_replica_sum(weight * x)
        optimizer = tpu.CrossShardOptimizer(
            tf1.train.GradientDescentOptimizer(1.0), tf1.losses.Reduction.SUM
        )
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make(sum_model_fn, train_batch_size=2).train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == -9.0


def test_a_model_without_sums_is_refused(make):
    def plain_model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(weight * features["x"])
        optimizer = tf1.train.GradientDescentOptimizer(1.0)
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    with pytest.raises(ValueError, match="CrossShardOptimizer must be used"):
        make(plain_model_fn).train(input_fn, steps=1)
    make(plain_model_fn, num_shards=1).train(input_fn, steps=1)  # there is nothing to sum up


@pytest.mark.parametrize("groups", [None, [[0], [1]]])
def test_a_weight_that_would_differ_from_shard_to_shard_is_refused(make, groups):
    def mixed_model_fn(features, labels, mode, params):
        weights = [tf1.get_variable(name, [], initializer=tf1.zeros_initializer()) for name in "ab"]
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
        make(mixed_model_fn).train(input_fn, steps=1)


def test_a_sum_within_a_function_is_refused(make):
    def accumulating_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        total = tf.cond(
            spec.loss > 0, lambda: tpu.cross_replica_sum(spec.loss), lambda: tf.constant(0.0)
        )
        return spec._replace(loss=total)

    with pytest.raises(ValueError, match="can't be made within"):
        make(accumulating_model_fn).train(input_fn, steps=1)


# What is of one shard


def test_moving_averages_are_those_of_the_first_shard(make):
    """Batch normalization: each shard normalizes its own batch; averages are the first one's, as on a TPU."""

    def normalized_model_fn(features, labels, mode, params):
        weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
        average = tf1.get_variable("average", [], trainable=False)
        mean = tf.reduce_mean(features["x"])
        update = average.assign(mean)
        with tf.control_dependencies([update]):
            loss = tf.reduce_sum(tf.square(weight * (features["x"] - mean)))
        optimizer = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.25))
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make(normalized_model_fn).train(input_fn, steps=1)
    assert estimator.get_variable_value("average") == 1.5  # of 1 and 2, not of 3 and 4
    # Each shard has 2 * (0.25 + 0.25) = 1 as its gradient; with the mean of all it would be 2 * 5 / 2.
    assert estimator.get_variable_value("weight") == 1.0 - 0.25


@pytest.mark.parametrize("seed", [None, 3])
def test_shards_draw_other_random_numbers(make, tmp_path, seed):
    seen = []

    def random_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        noise = tf1.random_uniform([1], seed=seed)
        note = (
            lambda noise: tf1.py_func(lambda n: seen.append(n.tolist()) or 0, [noise], tf.int64),
            [noise],
        )
        return spec._replace(host_call=note)

    make(random_model_fn, num_shards=4).train(input_fn, steps=2)
    assert len({number for step in seen for number in step}) == 8


def test_stateless_random_numbers_are_the_same(make):
    """As on a TPU, whose cores run one program with one seed."""
    seen = []

    def random_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        noise = tf.random.stateless_uniform(
            [1], tf.stack([tf.constant(1, tf.int64), tf1.train.get_global_step()])
        )
        note = (
            lambda noise: tf1.py_func(lambda n: seen.append(n.tolist()) or 0, [noise], tf.int64),
            [noise],
        )
        return spec._replace(host_call=note)

    make(random_model_fn, num_shards=4).train(input_fn, steps=2)
    assert [len(set(step)) for step in seen] == [1, 1]
    assert seen[0] != seen[1]


# What a host runs


def test_a_host_call_writes_summaries_step_by_step(make):
    def summarizing_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        step = tf.reshape(tf1.train.get_global_step(), [1])
        return spec._replace(host_call=(host_fn, [step, tf.reshape(spec.loss, [1])]))

    def host_fn(step, loss):
        assert loss.shape == [2]  # of both shards
        directory = f"{estimator.model_dir}/host"
        with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(True):
            tf.summary.scalar("loss", tf.reduce_max(loss), step=step[0])
            return tf1.summary.all_v2_summary_ops()

    estimator = make(summarizing_model_fn, params={"rate": 0.0})
    estimator.train(input_fn, steps=2)
    found = {}
    for event in observe.events_of(f"{estimator.model_dir}/host"):
        for value in event.summary.value:
            found[event.step] = float(tf.make_ndarray(value.tensor))
    # The losses of the second shard: 4 * mean(9, 16), 4 * mean(49, 64).
    assert found == {0: 50.0, 1: 226.0}


def test_a_scaffold_fn_is_called_once(make):
    calls = []

    def scaffold_fn():
        calls.append(tf1.global_variables("weight")[0])
        return tf1.train.Scaffold(init_fn=lambda scaffold, session: session.run(assign[0]))

    assign = []

    def scaffolding_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        assign[:] = [tf1.global_variables("weight")[0].assign(7.0)]
        return spec._replace(scaffold_fn=scaffold_fn)

    estimator = make(scaffolding_model_fn, params={"rate": 0.0}).train(input_fn, steps=1)
    assert estimator.get_variable_value("weight") == 7.0
    assert len(calls) == 1


# What there is not


def test_what_virtual_shards_have_not(make, tmp_path):
    with pytest.raises(RuntimeError, match="leave num_cores_per_replica out"):
        make(config={"num_cores_per_replica": 2}).train(input_fn, steps=1)
    config = tpu.RunConfig(master="grpc://tpu:8470", model_dir=str(tmp_path / "model"))
    estimator = tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)
    with pytest.raises(RuntimeError, match="leave master"):
        estimator.train(input_fn, steps=1)


def test_the_context_of_a_model_fn_is_not_that_of_an_input_fn(make):
    def curious_model_fn(features, labels, mode, params):
        assert params["context"].num_hosts == 1
        return params["context"].current_input_fn_deployment()

    with pytest.raises(RuntimeError, match="is for input_fn"):
        make(curious_model_fn).train(input_fn, steps=1)


def test_optimizers_are_as_they_were_afterwards(make):
    classes = (tf1.train.Optimizer, tf1.tpu.CrossShardOptimizer)
    before = [dict(vars(owner)) for owner in classes]
    make().train(input_fn, steps=1)
    assert [dict(vars(owner)) for owner in classes] == before
    assert tf1.tpu.CrossShardOptimizer is tpu.CrossShardOptimizer
