"""The threads that run the operations of a loop."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.loops import in_graph_loop
from estimator_core.execution.loops.in_graph_loop import LoopThreads


class Runs:
    """A loop that takes given seconds a time on the session's threads, and on the caller's.

    Attributes:
      made: (times, True on the caller's thread) of each run.
    """

    def __init__(self, of_session, of_caller, first=0.0):
        self.now = 0.0
        self.made = []
        self.secs = {False: of_session, True: of_caller}
        self.first = first

    def __call__(self, times, options):
        by_caller = options is not None
        if by_caller:
            assert options.inter_op_thread_pool == -1
        self.now += times * self.secs[by_caller] + (0 if self.made else self.first)
        self.made.append((times, by_caller))
        return times, True

    def threads(self):
        return LoopThreads(clock=lambda: self.now)


@pytest.mark.parametrize(
    ("of_session", "of_caller", "chosen"),
    [
        (0.002, 0.001, True),
        (0.001, 0.002, False),
        (0.001, 0.00104, True),  # about the same: one thread takes less of the processors
        (0.001, 0.00106, False),
    ],
)
@pytest.mark.parametrize("first", [0.0, 0.3])
def test_the_faster_ones_are_chosen(of_session, of_caller, chosen, first):
    runs = Runs(of_session, of_caller, first)
    threads = runs.threads()
    assert threads(runs, 500) == 500
    assert sum(times for times, _ in runs.made) == 500
    assert {by_caller for _, by_caller in runs.made} == {True, False}
    runs.made.clear()
    assert threads(runs, 70) == 70
    assert runs.made == [(70, chosen)]


def test_trials_of_fast_steps_are_long_enough_to_be_measured():
    runs = Runs(0.0001, 0.0002)
    assert runs.threads()(runs, 3000) == 3000
    assert runs.made[-7:-1] == [(128, False), (128, True)] * 3  # the first power of 2 that takes 10 ms
    assert all(not by_caller for _, by_caller in runs.made[:-7])
    assert len(runs.made) == 7 + 7  # with 1, 2, ... 64 before, and the rest behind


def test_trials_of_slow_steps_are_of_one_step():
    runs = Runs(3.0, 2.0)
    threads = runs.threads()
    for _ in range(6):
        assert threads(runs, 1) == 1
    assert runs.made == [(1, False), (1, True)] * 3
    assert threads(runs, 4) == 4
    assert runs.made[-1] == (4, True)


def test_calls_of_few_steps_are_trials_themselves():
    runs = Runs(0.0002, 0.0001)
    threads = runs.threads()
    for _ in range(9):
        assert threads(runs, 3) == 3
    runs.made.clear()
    assert threads(runs, 3) == 3
    assert runs.made == [(3, True)]


@pytest.mark.parametrize(("found", "whole"), [(0, 2), (1, 3)])
def test_nothing_is_run_after_a_loop_that_ended_by_itself(found, whole):
    """Even after the last time of a trial: a loss may be NaN there."""
    runs = Runs(0.02, 0.02)

    def ends_in_the_third(times, options):
        runs(times, options)
        return (found, False) if len(runs.made) == 3 else (times, True)

    assert runs.threads()(ends_in_the_third, 50) == whole
    assert [times for times, _ in runs.made] == [1, 1, 1]


def test_an_error_leaves_the_number_of_times_before_its_run():
    runs = Runs(0.02, 0.02)
    threads = runs.threads()

    def fails_in_the_fourth(times, options):
        if len(runs.made) == 3:
            raise ValueError("no more")
        return runs(times, options)

    with pytest.raises(ValueError, match="no more"):
        threads(fails_in_the_fourth, 50)
    assert threads.done == 3


def test_a_loop_may_be_left_to_the_session():
    runs = Runs(0.02, 0.01)
    assert LoopThreads(clock=lambda: runs.now, chooses=False)(runs, 9) == 9
    assert runs.made == [(9, False)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("by_caller", [True, False])
def test_the_smallest_numbers_are_the_same_on_all_threads(tmp_path, monkeypatch, by_caller):
    """TensorFlow's threads round numbers below 1.2e-38 to 0: so Adam's moments stop at 1.06e-37."""
    monkeypatch.setattr(in_graph_loop, "_TRIALS", 2)
    monkeypatch.setattr(in_graph_loop, "_MIN_SPEEDUP", 1e9 if by_caller else 0.0)

    def model_fn(features, labels, mode):
        weight = tf1.get_variable("w", initializer=np.ones(200, np.float32))
        loss = tf.reduce_sum(tf.square(weight * features["x"]))
        train_op = tf1.train.AdamOptimizer(0.01).minimize(loss, tf1.train.get_global_step())
        return est.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def batch(index):
        return {"x": tf.where(index < 30, tf.fill([200], 1e-3), tf.zeros([200]))}

    config = est.RunConfig(str(tmp_path), log_step_count_steps=500, save_summary_steps=500)
    estimator = est.Estimator(model_fn, config=config).train(lambda: tf.data.Dataset.range(1500).map(batch))
    moments = estimator.get_variable_value("w/Adam")
    assert moments == pytest.approx([1.0608476e-37] * 200, rel=1e-6, abs=0)
