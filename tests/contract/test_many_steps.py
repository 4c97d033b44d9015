"""Many steps in a session call give the same as one step a call, bit for bit."""

import logging

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.circles import in_circles
from tests.contract.executions import lines_of, summaries_of, values_of
from tests.contract.programs_in_a_loop import IN_A_LOOP, ONE_BY_ONE, estimator_of, forty_steps, two_layers

LAST = 23  # no multiple of 3, 7 or 10
FIRST = {"accumulated_state", "adam", "dropout_with_seed", "numpy_function", "queue", "table_and_ftrl"}
SLOW = {"branches", "clipped_adagrad", "decaying_momentum", "dnn_with_dropout", "gru", "rms_prop"}
PROGRAMS = {**{name: (*each, None) for name, each in IN_A_LOOP.items()}, **ONE_BY_ONE}


class EverySixth(est.SessionRunHook):
    """Notes the loss, and at which steps it is called."""

    def __init__(self):
        self.losses = {}

    def begin(self):
        self._loss = tf1.get_collection(tf1.GraphKeys.LOSSES)[-1]

    def steps_until_due(self, global_step):
        return 6 - global_step % 6

    def skip_steps(self, steps):
        pass

    def before_run(self, run_context):
        return est.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        step = int(run_context.session.run(tf1.train.get_global_step(run_context.session.graph)))
        if step % 6 == 0:
            self.losses[step] = run_values.results.tobytes()


def observed(make, input_fn, steps_per_session_run, model_dir, caplog, last=LAST, **settings):
    """All that a training leaves behind."""
    config = est.RunConfig(
        model_dir=str(model_dir),
        tf_random_seed=1,
        save_checkpoints_steps=5,
        save_summary_steps=4,
        log_step_count_steps=8,
        keep_checkpoint_max=100,
        steps_per_session_run=steps_per_session_run,
        **settings,
    )
    hook = EverySixth()
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        make(config).train(input_fn, hooks=[hook], max_steps=last)
    weights = {}
    for path in tf.train.get_checkpoint_state(str(model_dir)).all_model_checkpoint_paths:
        weights[int(path.rpartition("-")[2])] = {
            name: value.tobytes()
            for name, value in values_of(path).items()
            if name != "_CHECKPOINTABLE_OBJECT_GRAPH"  # Keras counts the models of the process in it
        }
    return {
        "weights": weights,
        "losses": dict(summaries_of(model_dir, "loss")),
        "hook": hook.losses,
        "lines": [line.split(" (")[0] for line in lines_of(caplog, "loss = ")],
        "final": lines_of(caplog, "Loss for final step"),
    }


def different(found, expected):
    """The steps and names at which checkpoints differ."""
    assert set(found) == set(expected)
    return [
        (step, name)
        for step in expected
        for name in {*found[step], *expected[step]}
        if found[step].get(name) != expected[step].get(name)
    ]


def one_step_a_call(name, tmp_path_factory, caplog, results={}):  # noqa: B006  (made once for all K)
    if name not in results:
        make, input_fn, _ = PROGRAMS[name]
        results[name] = observed(make, input_fn, 1, tmp_path_factory.mktemp(name), caplog)
    return results[name]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("steps", in_circles([3, 7, 10], slow={3, 10}))
@pytest.mark.parametrize("name", in_circles(sorted(PROGRAMS), first=FIRST, slow=SLOW))
def test_the_results_are_those_of_one_step_a_call(name, steps, tmp_path_factory, tmp_path, caplog):
    make, input_fn, reason = PROGRAMS[name]
    expected = one_step_a_call(name, tmp_path_factory, caplog)
    found = observed(make, input_fn, steps, tmp_path, caplog)
    assert sorted(expected["weights"]) == [0, 5, 10, 15, 20, 23]
    assert sorted(expected["hook"]) == [6, 12, 18]
    why = lines_of(caplog, "Training steps are run one by one")
    assert len(why) == (reason is not None), why
    assert reason is None or reason in why[0]
    assert "One step per session call" not in caplog.text
    assert different(found["weights"], expected["weights"]) == []
    assert found["hook"] == expected["hook"]
    assert found["lines"] == expected["lines"]
    assert found["final"] == expected["final"]
    # TensorFlow's hook reads the step before or after the update, and then comes a step early.
    assert found["losses"].get(1) == expected["losses"].get(1)
    for step in set(found["losses"]) & set(expected["losses"]):
        assert found["losses"][step] == expected["losses"][step]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("batches", [9, 11, 12])
@pytest.mark.parametrize("steps", [1, 5])
def test_the_loss_at_the_end_of_the_input_is_that_of_the_last_step(
    batches, steps, tmp_path_factory, tmp_path, caplog
):
    """The input ends within a loop, and with the step after it that hooks are called around."""
    make = estimator_of(two_layers())
    expected = observed(make, forty_steps, 1, tmp_path_factory.mktemp("max"), caplog, last=batches)
    found = observed(make, lambda: forty_steps().take(batches), steps, tmp_path, caplog, last=40)
    assert different({batches: found["weights"][batches]}, {batches: expected["weights"][batches]}) == []
    assert found["final"] == expected["final"]
    assert f"The input ended at global step {batches}," in caplog.text


@pytest.mark.more
def test_two_replicas_have_the_same_results_as_well(tmp_path_factory, tmp_path, caplog):
    results = []
    for count, model_dir in ((1, tmp_path_factory.mktemp("one")), (7, tmp_path)):
        strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        make = estimator_of(two_layers())
        results.append(observed(make, forty_steps, count, model_dir, caplog, train_distribute=strategy))
    (why,) = [line for line in caplog.messages if "one by one" in line]
    assert "CollectiveReduce" in why  # the sum over the replicas
    expected, found = results
    assert sorted(expected["weights"]) == [0, 5, 10, 15, 20, 23]
    assert different(found["weights"], expected["weights"]) == []
    assert (found["hook"], found["lines"]) == (expected["hook"], expected["lines"])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bad", [1, 2, 3, 4, 6, 7, 11, 13, 20])
def test_a_nan_loss_ends_training_wherever_it_comes(tmp_path, bad):
    """Also at the end of the first runs of a loop, which find out the faster threads."""
    read = []

    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(tf1.get_variable("weight", initializer=1.0) * features["x"])
        step = tf1.train.get_global_step()
        train_op = tf1.train.GradientDescentOptimizer(0.0).minimize(loss, step)
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        def batch(index):
            read.append(int(index))
            return np.float32([np.nan if index == bad else 1.0])

        def features(index):
            x = tf.numpy_function(batch, [index], tf.float32)
            x.set_shape([1])
            return {"x": x}

        options = tf.data.Options()
        options.autotune.enabled = False  # tf.data would read ahead
        return tf.data.Dataset.range(400).map(features).with_options(options)

    config = est.RunConfig(str(tmp_path), steps_per_session_run=50, log_step_count_steps=300)
    with pytest.raises(est.NanLossDuringTrainingError):
        est.Estimator(model_fn, config=config).train(input_fn, max_steps=400)
    assert read == [*range(bad + 1)]
