"""Settings of RunConfig for how often something happens in training, on one device and on two."""

import functools
import time

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.summaries import read_evaluations
from tests.estimator_core.programs import Recorder, checkpoints, saved_steps


@pytest.fixture(params=["one_device", "two_devices"])
def make(request, make_estimator):
    """Makes the Estimator of conftest. All replicas get the same batch, so its numbers hold here too."""

    def with_intervals(**intervals):
        if request.param == "two_devices":
            intervals["train_distribute"] = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        return make_estimator(**intervals)

    return with_intervals


def steps_of(model_dir, tag):
    return [step for step, values in read_evaluations(model_dir).items() if tag in values]


class Clock(est.SessionRunHook):
    """Time passes by four seconds after each step, and not otherwise."""

    def __init__(self, monkeypatch):
        self._now = time.time()
        monkeypatch.setattr("time.time", lambda: self._now)

    def after_run(self, run_context, run_values):
        self._now += 4.0


def test_save_summary_steps(make, input_fn):
    events = read_evaluations(make(save_summary_steps=4).train(input_fn, steps=12).model_dir)
    losses = {step: values["loss"] for step, values in events.items() if "loss" in values}
    # TensorFlow's hook may take the step of a run for the one that follows, and be due one step early.
    first, second, third, *_ = losses
    assert first == 1
    assert second - first in (3, 4)
    assert third - second in (3, 4)
    # The loss of a step is the square of 2 / 2^(step - 1): 4 in the first one.
    assert losses == {step: 4.0 / 4 ** (step - 1) for step in losses}


@pytest.mark.sampled(1)
def test_save_checkpoints_steps(make, input_fn):
    estimator = make(save_checkpoints_steps=3).train(input_fn, steps=8)
    assert checkpoints(estimator.model_dir) == [0, 3, 6, 8]
    estimator.train(input_fn, steps=4)  # counts from where it begins, and keeps five
    assert checkpoints(estimator.model_dir) == [3, 6, 8, 11, 12]


def test_save_checkpoints_secs(make, input_fn, monkeypatch):
    """A checkpoint sees the time of the steps before: 12 s at step 4, 24 s at step 7."""
    estimator = make(save_checkpoints_secs=10).train(input_fn, steps=9, hooks=[Clock(monkeypatch)])
    assert checkpoints(estimator.model_dir) == [0, 4, 7, 9]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, [4, 6, 8, 10, 11]),
        ({"keep_checkpoint_max": 3}, [8, 10, 11]),
        ({"keep_checkpoint_max": None}, [0, 2, 4, 6, 8, 10, 11]),
        ({"keep_checkpoint_max": 0}, [0, 2, 4, 6, 8, 10, 11]),
        ({"keep_checkpoint_max": 2, "keep_checkpoint_every_n_hours": None}, [10, 11]),
        # One an hour is kept for good: time enough between two when an hour is short.
        ({"keep_checkpoint_max": 2, "keep_checkpoint_every_n_hours": 1e-9}, [0, 2, 4, 6, 8, 10, 11]),
    ],
    ids=str,
)
def test_checkpoints_that_are_kept(make, input_fn, settings, kept):
    estimator = make(save_checkpoints_steps=2, **settings).train(input_fn, steps=11)
    assert checkpoints(estimator.model_dir) == kept


def test_a_smaller_number_of_checkpoints_also_applies_to_those_of_an_earlier_training(
    make_estimator, input_fn, eval_input_fn
):
    keep = functools.partial(make_estimator, save_checkpoints_steps=2)
    model_dir = keep(keep_checkpoint_max=6).train(input_fn, steps=11).model_dir
    assert checkpoints(model_dir) == [2, 4, 6, 8, 10, 11]
    keep(keep_checkpoint_max=3).train(input_fn, steps=1)
    assert checkpoints(model_dir) == [10, 11, 12]
    assert saved_steps(model_dir) == [10, 11, 12]
    specs = est.TrainSpec(input_fn, max_steps=13), est.EvalSpec(eval_input_fn)
    est.train_and_evaluate(keep(keep_checkpoint_max=1), *specs)
    assert checkpoints(model_dir) == [13]


def test_log_step_count_steps(make, input_fn, caplog):
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator = make(log_step_count_steps=3).train(input_fn, steps=8)
    lines = [record.getMessage().split(" (")[0] for record in caplog.records]
    losses = [line for line in lines if line.startswith("loss = ")]
    assert losses == [f"loss = {4.0 / 4**step}, step = {step}" for step in (0, 3, 6)]
    # Steps per second are counted from the first step on.
    assert steps_of(estimator.model_dir, "global_step/sec") == [4, 7]
    assert len([line for line in lines if line.startswith("global_step/sec: ")]) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("none", [None, 0])
def test_no_log_lines_and_no_summaries_without_an_interval(make, input_fn, caplog, none):
    with caplog.at_level("INFO", logger="tensorflow"):
        estimator = make(log_step_count_steps=None, save_summary_steps=none).train(input_fn, steps=3)
    assert steps_of(estimator.model_dir, "loss") == []
    assert "step = " not in caplog.text
    assert steps_of(estimator.model_dir, "global_step/sec") == []


def test_throttle_secs_pass_between_evaluations(make_estimator, input_fn, eval_input_fn, monkeypatch):
    """Checkpoint 2 is evaluated after 4 s; checkpoint 4 comes 8 s later, checkpoint 6 after 16 s."""
    recorder = Recorder()
    est.train_and_evaluate(
        make_estimator(save_checkpoints_steps=2),
        est.TrainSpec(input_fn, 9, hooks=[Clock(monkeypatch)]),
        est.EvalSpec(eval_input_fn, exporters=recorder, throttle_secs=10),
    )
    assert recorder.calls == [(2, False), (6, False), (9, True)]
