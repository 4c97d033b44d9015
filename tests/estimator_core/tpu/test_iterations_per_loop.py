"""TPUConfig.iterations_per_loop on virtual shards: hooks, checkpoints and summaries go by loops."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from tests.estimator_core.programs import saved_steps, scalars_of, zeros
from tests.estimator_core.shard_programs import shared_descent


def model_fn(features, labels, mode, params):
    """A step halves the distance to a weight of 2: after n it is 2 - 2 / 2^n, and its loss 4 / 4^n."""
    loss = tf.reduce_mean(tf.square(zeros("weight") * features["x"] - labels))
    train_op = shared_descent(loss, 0.25)
    noted = [tf.reshape(tf1.train.get_global_step(), [1])]
    host_call = (params["host_fn"], noted) if "host_fn" in params else None
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=host_call)


def input_fn(params, batches=-1):
    return tf.data.Dataset.from_tensors(({"x": [1.0] * 4}, [2.0] * 4)).repeat().take(batches)


class Seen(est.SessionRunHook):
    """The global steps at which it is called and at which training ends, and the losses that it fetches."""

    def __init__(self):
        self.steps, self.losses, self.ended_at = [], [], None

    def before_run(self, run_context):
        return est.SessionRunArgs(tf1.get_collection(tf1.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        self.steps.append(self._step(run_context.session))
        self.losses.append(float(run_values.results))

    def end(self, session):
        self.ended_at = self._step(session)

    def _step(self, session):
        return int(session.run(tf1.train.get_global_step(session.graph)))


@pytest.fixture
def make(tmp_path):
    def make_estimator(model_fn=model_fn, params=None, folder="model", **config):
        names = ("iterations_per_loop", "experimental_host_call_every_n_steps")
        of_tpu = {name: config.pop(name) for name in names if name in config}
        tpu_config = tpu.TPUConfig(num_shards=2, **of_tpu)
        config = tpu.RunConfig(tpu_config, model_dir=str(tmp_path / folder), **config)
        return tpu.TPUEstimator(model_fn, config=config, params=params, train_batch_size=4)

    return make_estimator


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("iterations", "steps"),
    [
        ({}, [2, 4, 6, 8]),
        ({"iterations_per_loop": 3}, [3, 6, 8]),
        ({"iterations_per_loop": "5"}, [5, 8]),
        ({"iterations_per_loop": "1h"}, [1, 8]),  # eight steps never take an hour
    ],
)
def test_hooks_see_the_ends_of_loops(make, iterations, steps):
    seen = Seen()
    estimator = make(**iterations).train(input_fn, [seen], steps=8)
    assert seen.steps == steps
    assert seen.losses == pytest.approx([4 / 4 ** (step - 1) for step in steps])
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 2 - 2 / 2**8)


def test_training_ends_exactly_and_goes_on(make):
    seen = Seen()
    estimator = make(iterations_per_loop=4).train(input_fn, [seen], steps=6)
    estimator.train(input_fn, [seen], max_steps=11)
    assert seen.steps == [4, 6, 10, 11]
    assert estimator.get_variable_value("global_step") == 11


def test_checkpoints_and_summaries_come_at_the_ends_of_loops(make):
    estimator = make(
        iterations_per_loop=3, save_checkpoints_steps=10, save_summary_steps=10, keep_checkpoint_max=10
    ).train(input_fn, steps=31)
    # The first loop that ends 10 steps after the last checkpoint, and the end.
    assert saved_steps(estimator.model_dir) == [0, 12, 24, 31]
    losses = scalars_of(estimator.model_dir)["loss"]
    # After the first loop, and of the first loop that begins 10 steps after the last summary.
    assert list(losses) == [3, 15, 27]
    assert losses[3] == pytest.approx(4 / 4**2)


@pytest.mark.parametrize(("every", "steps"), [(1, [0, 1, 2, 3, 4, 5, 6]), (2, [0, 2, 4, 6])])
def test_a_host_call_runs_every_so_many_steps(make, every, steps):
    noted = []

    def host_fn(step):
        return tf1.py_func(lambda step: noted.append(step.tolist()), [step], [])

    config = {"iterations_per_loop": 4, "experimental_host_call_every_n_steps": every}
    make(params={"host_fn": host_fn}, **config).train(input_fn, steps=7)
    assert noted == [[step] * 2 for step in steps]  # of both shards


@pytest.mark.parametrize(("batches", "called_at"), [(5, [3]), (2, []), (6, [3, 6])])
def test_the_input_ends_within_a_loop(make, caplog, batches, called_at):
    seen = Seen()
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator = make(iterations_per_loop=3).train(
            lambda params: input_fn(params, batches), [seen], max_steps=20
        )
    assert (seen.steps, seen.ended_at) == (called_at, batches)
    assert estimator.get_variable_value("global_step") == batches
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 2 - 2 / 2**batches)
    assert f"The input ended at global step {batches}" in caplog.text
    assert f"Loss for final step: {4 / 4 ** (batches - 1)}." in caplog.text
    assert "made no steps" not in caplog.text


def test_the_loss_is_logged_every_so_many_loops(make, caplog):
    """log_step_count_steps=10 is every ceil(10 / 4) = 3 loops."""
    with caplog.at_level("INFO", logger="tensorflow"):
        make(iterations_per_loop=4, log_step_count_steps=10).train(input_fn, steps=26)
    lines = [line.partition(" (")[0] for line in caplog.messages if line.startswith("loss = ")]
    assert [int(line.split("step = ")[1]) for line in lines] == [4, 16, 26]
    assert [float(line.split()[2].rstrip(",")) for line in lines] == pytest.approx(
        [4 / 4**3, 4 / 4**15, 4 / 4**25]
    )


def test_what_a_hook_feeds_is_fed_to_each_step_of_a_loop(make):
    """A learning rate of 0 from step 4 on, which a hook sets as programs of TensorFlow 1 did."""

    def fed_model_fn(features, labels, mode, params):
        loss = tf.reduce_mean(zeros("weight") * features["x"])
        rate = tf1.placeholder_with_default(8.0, [], name="rate")
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, rate))

    class Rate(est.SessionRunHook):
        def before_run(self, run_context):
            step = run_context.session.run(tf1.train.get_global_step(run_context.session.graph))
            return est.SessionRunArgs(None, {"rate:0": 0.5 if step < 4 else 0.0})

    estimator = make(fed_model_fn, iterations_per_loop=4).train(input_fn, [Rate()], steps=11)
    assert estimator.get_variable_value("weight") == -0.5 * 4


def log_model_fn(features, labels, mode, params):
    """loss = log(weight) is NaN in the third step, and a number again in the fourth.

    From 1, the weight goes to 0.6, by 0.4 / 0.6 to -0.066 and by 0.4 / 0.066 to 5.93.
    """
    weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
    loss = tf.math.log(weight) + 0.0 * tf.reduce_mean(features["x"])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=shared_descent(loss, 0.4))


def test_a_nan_loss_within_a_loop_ends_training(make):
    estimator = make(log_model_fn, iterations_per_loop=5)
    with pytest.raises(est.NanLossDuringTrainingError, match="at global step 3"):
        estimator.train(input_fn, steps=20)
    assert estimator.get_variable_value("global_step") == 0  # no checkpoint after the first


def test_an_error_says_at_which_step_it_came(make, caplog):
    def fails_after_eight_steps(params):
        def batch(number):
            one = 1 // tf.cast(number < 8, tf.int32)  # no division by 0
            return {"x": tf.fill([4], tf.cast(one, tf.float32))}, tf.fill([4], 2.0)

        return tf.data.Dataset.range(100).map(batch)

    with pytest.raises(tf.errors.InvalidArgumentError):
        make(iterations_per_loop=3).train(fails_after_eight_steps, steps=40)
    assert "Training failed in the step after global step 8." in caplog.text


def test_loops_change_no_number(make):
    """The same weights, bit by bit, after loops of 1 and of 7 steps, with batches that differ."""
    x = np.random.RandomState(0).rand(40, 4).astype(np.float32)
    one, seven = (
        make(params={}, folder=str(iterations), iterations_per_loop=iterations)
        .train(lambda params: tf.data.Dataset.from_tensor_slices(({"x": x}, 3 * x)), steps=33)
        .get_variable_value("weight")
        for iterations in (1, 7)
    )
    assert one == seven
