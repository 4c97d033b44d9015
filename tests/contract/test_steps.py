"""Training ends, and hooks are called, at the same steps under every Execution."""

import itertools
import logging

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.single_device import SingleDevice
from tests.circles import in_circles
from tests.contract.executions import (
    EXECUTIONS,
    FIRST,
    OTHER_NUMBERS_OF_STEPS,
    ends_of_calls,
    lines_of,
    several_steps_in_a_run,
    steps_without_hooks,
    summaries_of,
)
from tests.estimator_core.programs import Fetching, descent, saved_steps, zeros
from tests.oracle import observe


def model_fn(features, labels, mode):
    """prediction = weight * x, loss = mean((prediction - label)^2): the weight halves its way to 2."""
    y = zeros("weight") * features["x"]
    loss = tf.reduce_mean(tf.square(y - labels), name="squared_error")
    return est.EstimatorSpec(mode, {"y": y}, loss, descent(loss, 0.25))


def input_fn(input_context=None):
    return tf.data.Dataset.from_tensors(({"x": [1.0, 1.0]}, [2.0, 2.0])).repeat()


def loss_at(step):
    """The loss of a step after `step` others: (w - 2)^2 with w = 2 - 2 / 2^n."""
    return 4.0 / 4.0**step


@pytest.fixture
def make_estimator(execution, monkeypatch, tmp_path):
    """Returns a function that makes the Estimator of the model, which trains under the Execution."""

    def make(execution=execution, model_fn=model_fn, **config):
        monkeypatch.setattr(
            "estimator_core.estimator.select_execution",
            lambda config, mode: execution if mode == "train" else SingleDevice(),
        )
        return est.Estimator(model_fn, config=est.RunConfig(model_dir=str(tmp_path), **config))

    return make


def global_step(estimator):
    return int(estimator.get_variable_value("global_step"))


with_other_numbers_of_steps = pytest.mark.parametrize(
    "execution", in_circles(sorted({**EXECUTIONS, **OTHER_NUMBERS_OF_STEPS}), first=FIRST), indirect=True
)


@with_other_numbers_of_steps
def test_training_ends_where_it_should(execution, advanced, make_estimator):
    estimator = make_estimator().train(input_fn, steps=7)
    assert global_step(estimator) == 7
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 2 - 2 / 2**7)
    assert advanced == steps_without_hooks(ends_of_calls(execution, 7))
    if execution.steps_per_session_run == 5:
        assert advanced == [4]  # the first step is made alone; 2 to 6 are five, 7 is the last
    estimator.train(input_fn, max_steps=12)
    assert global_step(estimator) == 12
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 2 - 2 / 2**12)


def test_checkpoints_and_summaries_are_of_the_same_steps(make_estimator, tmp_path):
    settings = {"save_checkpoints_steps": 4, "save_summary_steps": 3, "keep_checkpoint_max": 10}
    make_estimator(**settings).train(input_fn, steps=11)
    assert saved_steps(tmp_path) == [0, 4, 8, 11]
    losses = dict(summaries_of(tmp_path, "loss"))
    # TensorFlow's hook reads the step before or after the update, and then comes a step early; it
    # counts the next three from there.
    steps = sorted(losses)
    assert steps[0] == 1
    assert {after - before for before, after in itertools.pairwise(steps)} <= {2, 3}
    assert steps[-1] > 11 - 3
    # The loss of two replicas is the sum of theirs, or their mean: it halves with the weight either way.
    assert {step: loss / losses[1] * 4.0 for step, loss in losses.items()} == pytest.approx(
        {step: loss_at(step - 1) for step in losses}
    )


def test_speed_is_logged_at_the_same_steps(make_estimator, tmp_path):
    make_estimator(log_step_count_steps=3).train(input_fn, steps=11)
    steps = [step for step, _ in summaries_of(tmp_path, "global_step/sec")]
    assert steps == [4, 7, 10]  # the count begins with step 1


def test_lines_of_progress_are_of_the_same_steps(make_estimator, caplog):
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        make_estimator(log_step_count_steps=4).train(input_fn, steps=11)
    lines = lines_of(caplog, "loss = ")
    assert [line.split("step = ")[1].split()[0] for line in lines] == ["0", "4", "8"]


class Losses(Fetching):
    """Notes the losses of the steps that it is called at."""

    def __init__(self):
        super().__init__(lambda graph: "squared_error:0")


class EveryThird(Losses):
    """Is due at every third step."""

    def __init__(self):
        super().__init__()
        self.skipped = []

    def steps_until_due(self, global_step):
        return 3 - global_step % 3

    def skip_steps(self, steps):
        self.skipped.append(steps)


@with_other_numbers_of_steps
def test_a_hook_that_says_when_is_called_then(execution, advanced, make_estimator):
    hook = EveryThird()
    make_estimator().train(input_fn, hooks=[hook], steps=11)
    ends = ends_of_calls(execution, 11, every=3)
    if execution.steps_per_session_run in (5, 10):
        assert ends == [1, 3, 6, 9, 11]
    assert hook.values == pytest.approx([loss_at(end - 1) for end in ends])
    assert advanced == hook.skipped == steps_without_hooks(ends)


@with_other_numbers_of_steps
def test_a_hook_that_does_not_say_when_is_called_at_every_step(execution, advanced, make_estimator, caplog):
    hook = Losses()
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        make_estimator().train(input_fn, hooks=[hook], steps=11)
    assert hook.values == pytest.approx([loss_at(step) for step in range(11)])
    assert advanced == []
    if execution.steps_per_session_run > 1:
        assert "Losses" in caplog.text
        assert "every step" in caplog.text


def test_logged_tensors_are_of_the_same_steps(make_estimator):
    lines = []
    hook = est.LoggingTensorHook(
        {"loss": "squared_error:0"},
        every_n_iter=4,
        at_end=False,
        formatter=lambda values: lines.append(float(values["loss"])) or "",
    )
    make_estimator().train(input_fn, hooks=[hook], steps=11)
    assert lines == pytest.approx([loss_at(step) for step in (0, 4, 8)])


@with_other_numbers_of_steps
def test_hooks_that_act_at_the_end_alone_hold_nothing_up(execution, advanced, make_estimator):
    final = est.FinalOpsHook("weight/Read/ReadVariableOp:0")
    logged = est.LoggingTensorHook({"loss": "squared_error:0"}, at_end=True)
    make_estimator().train(input_fn, hooks=[final, logged], steps=7)
    assert final.final_ops_values == 2 - 2 / 2**7
    assert advanced == steps_without_hooks(ends_of_calls(execution, 7))


def test_evaluations_in_memory_are_of_the_same_steps(make_estimator):
    estimator = make_estimator()
    hook = est.experimental.InMemoryEvaluatorHook(estimator, lambda: input_fn().take(1), every_n_iter=4)
    estimator.train(input_fn, hooks=[hook], steps=11)
    evaluations = dict(summaries_of(estimator.eval_dir(), "loss"))
    assert evaluations == pytest.approx({step: loss_at(step) for step in (0, 4, 8, 11)})


def test_early_stopping_asks_and_stops_at_the_same_steps(make_estimator):
    estimator = make_estimator()
    answers = iter([False, False, True])
    hook = est.experimental.make_early_stopping_hook(
        estimator, lambda: next(answers), run_every_secs=None, run_every_steps=3
    )
    estimator.train(input_fn, hooks=[hook], steps=50)
    # It looks at the step before: 0, 3, 6; so it is asked in steps 1, 4 and 7.
    assert global_step(estimator) == 7


def test_the_end_of_the_input_loses_no_step(execution, make_estimator):
    estimator = make_estimator()
    estimator.train(lambda input_context=None: input_fn().take(9 * execution.num_replicas))
    assert global_step(estimator) == 9
    np.testing.assert_allclose(estimator.get_variable_value("weight"), 2 - 2 / 2**9)


def test_an_evaluation_at_the_end_of_the_input_is_of_the_last_step(execution, make_estimator):
    estimator = make_estimator()
    hook = est.experimental.InMemoryEvaluatorHook(estimator, lambda: input_fn().take(1), every_n_iter=6)
    batches = 9 * execution.num_replicas
    estimator.train(lambda input_context=None: input_fn().take(batches), hooks=[hook])
    steps = {event.step for event in observe.events_of(estimator.eval_dir()) if event.summary.value}
    assert steps == {0, 6, 9}


def log_model_fn(features, labels, mode):
    """loss = log(weight), whose gradient is 1 / weight: it is a number where the loss is NaN.

    From 1, the weight goes to 0.6 and by 0.4 / 0.6 to -0.066: the third loss is NaN. It then goes to
    5.93: the fourth is a number again.
    """
    loss = tf.math.log(tf1.get_variable("weight", [], initializer=tf1.ones_initializer()))
    return est.EstimatorSpec(mode, loss=loss, train_op=descent(loss, 0.4))


@with_other_numbers_of_steps
@pytest.mark.parametrize("batches", [4, None])
def test_a_nan_loss_ends_training_and_names_its_step(execution, advanced, make_estimator, batches):
    estimator = make_estimator(model_fn=log_model_fn)
    take = -1 if batches is None else batches * execution.num_replicas
    with pytest.raises(est.NanLossDuringTrainingError, match="at global step 3"):
        estimator.train(lambda input_context=None: input_fn().take(take), steps=40)
    assert global_step(estimator) == 0  # no checkpoint was written after the first
    assert bool(advanced) == (execution.steps_per_session_run > 1)


@with_other_numbers_of_steps
def test_an_error_says_at_which_step_it_came(execution, make_estimator, caplog):
    def fails_after_eight_steps(input_context=None):
        def batch(number):
            one = 1 // tf.cast(number < 8 * execution.num_replicas, tf.int32)  # no division by 0
            return {"x": tf.fill([2], tf.cast(one, tf.float32))}, tf.fill([2], 2.0)

        return tf.data.Dataset.range(100 * execution.num_replicas).map(batch)

    with pytest.raises(tf.errors.InvalidArgumentError):
        make_estimator().train(fails_after_eight_steps, steps=40)
    ends = ends_of_calls(execution, 40)
    start = max(end for end in ends if end <= 8)
    end = min(end for end in ends if end > 8)
    if end == 9:  # the step around which hooks are called
        expected = "in the step after global step 8."
    else:
        expected = f"between global steps {start} and {end - 1}; the global step is 8."
    assert f"Training failed {expected}" in caplog.text


def test_a_model_that_counts_otherwise_is_run_step_by_step(execution, make_estimator, caplog):
    def counts_twice(features, labels, mode):
        spec = model_fn(features, labels, mode)
        with tf.control_dependencies([spec.train_op]):
            again = tf1.train.get_global_step().assign_add(1)
        return spec._replace(train_op=again)

    estimator = make_estimator(model_fn=counts_twice)
    with caplog.at_level(logging.WARNING, logger="tensorflow"):
        estimator.train(input_fn, steps=20)
    assert global_step(estimator) in (20, 22)  # TensorFlow's hook reads before or after the update
    # Where each session call makes one step anyway, it does not matter how the model counts.
    assert ("does not grow by 1" in caplog.text) == (execution.steps_per_session_run > 1)


def test_no_interval_is_taken_for_the_number_of_steps_in_a_run(make_estimator, tmp_path):
    intervals = {"save_checkpoints_steps": 6, "save_summary_steps": None, "log_step_count_steps": None}
    execution = several_steps_in_a_run(SingleDevice, 100)()
    make_estimator(execution=execution, keep_checkpoint_max=10, **intervals).train(input_fn, steps=20)
    assert saved_steps(tmp_path) == [0, 6, 12, 18, 20]
