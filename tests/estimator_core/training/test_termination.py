"""SIGTERM during a training in this process."""

import signal
import sys
import threading
import time

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.training.in_turns import train_and_evaluate_in_turns
from estimator_core.training.termination import (
    SIGTERM_EXIT_CODE,
    ends_on_sigterm,
    exits_on_sigterm,
    serve_until_sigterm,
)


class SigtermAt(tf1.train.SessionRunHook):
    def __init__(self, step):
        self._left = step

    def after_run(self, run_context, run_values):
        self._left -= 1
        if not self._left:
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture(autouse=True)
def _as_in_a_new_process():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("is_first", [True, False])
def test_the_step_is_finished_and_saved(make_estimator, input_fn, is_first):
    estimator = make_estimator(save_checkpoints_steps=1000)
    with pytest.raises(SystemExit) as exit_, ends_on_sigterm() as termination:  # noqa: PT012
        sigterm = SigtermAt(4)
        hooks = termination.hooks
        hooks = [sigterm, *hooks] if is_first else [*hooks, sigterm]
        estimator.train(input_fn, hooks=hooks, max_steps=100)
    assert exit_.value.code == SIGTERM_EXIT_CODE == 143
    # A hook that was called before the signal came stops the training after the next step.
    assert estimator.get_variable_value("global_step") == (4 if is_first else 5)


def test_hooks_behind_save_too(make_estimator, input_fn, tmp_path):
    """Such as a saver among the training_hooks of a model_fn's spec: they come after the caller's."""
    saver = tf1.train.CheckpointSaverHook(str(tmp_path / "own"), save_steps=1000)
    estimator = make_estimator(save_checkpoints_steps=None, save_checkpoints_secs=None)
    with pytest.raises(SystemExit), ends_on_sigterm() as termination:
        estimator.train(input_fn, hooks=[SigtermAt(4), *termination.hooks, saver], max_steps=100)
    assert tf.train.latest_checkpoint(str(tmp_path / "own")).endswith("-4")


def test_a_master_does_not_evaluate_any_more(make_estimator, input_fn, eval_input_fn):
    estimator = make_estimator(save_checkpoints_steps=1000)
    evaluations = []
    eval_spec = est.EvalSpec(lambda: evaluations.append(1) or eval_input_fn(), throttle_secs=1000)
    with pytest.raises(SystemExit), ends_on_sigterm() as termination:  # noqa: PT012
        train_spec = est.TrainSpec(input_fn, 100, [SigtermAt(4), *termination.hooks])
        train_and_evaluate_in_turns(estimator, train_spec, eval_spec, termination.exit_if_asked)
    assert estimator.get_variable_value("global_step") == 4
    assert len(evaluations) <= 1  # that of the checkpoint at the end of the training


def test_a_training_without_a_signal_ends_as_ever(make_estimator, input_fn):
    estimator = make_estimator()
    with ends_on_sigterm() as termination:
        estimator.train(input_fn, hooks=termination.hooks, steps=3)
    assert len(termination.hooks) == 1
    assert estimator.get_variable_value("global_step") == 3


def test_without_a_session_the_process_ends_at_once():
    with pytest.raises(SystemExit) as exit_, ends_on_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert exit_.value.code == 143


@pytest.mark.parametrize("context", [ends_on_sigterm, exits_on_sigterm])
def test_a_handler_of_the_program_stays(context):
    calls = []
    signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    with context() as termination:
        signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert calls == [signal.SIGTERM]
    if context is ends_on_sigterm:
        assert termination.hooks == []


def test_a_thread_can_not_handle_signals():
    found = []

    def enter():
        with ends_on_sigterm() as termination:
            found.append(termination.hooks)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [[]]


class Trainers:
    """Tasks that train, and end after `looks` looks at them."""

    def __init__(self, looks):
        self.looks_left = looks
        self.waited = []

    def are_there(self):
        self.looks_left -= 1
        return self.looks_left >= 0


def serve(trainers, **settings):
    """Serves, gets SIGTERM, and returns the exit code."""
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGTERM])
    timer.start()
    with pytest.raises(SystemExit) as exit_:
        serve_until_sigterm(trainers.are_there, sleep=trainers.waited.append, **settings)
    timer.join()
    return exit_.value.code


@pytest.mark.parametrize(
    ("looks", "waits", "left"),
    [
        pytest.param(4, 3, -1, id="waits for the tasks that train"),  # the first look is for the log
        pytest.param(0, 0, -2, id="ends immediately if nobody needs it"),
    ],
)
def test_a_server_waits_while_it_is_needed(looks, waits, left):
    trainers = Trainers(looks)
    assert serve(trainers) == 143
    assert len(trainers.waited) == waits
    assert trainers.looks_left == left


def test_a_server_does_not_wait_longer_than_it_may():
    trainers = Trainers(10**9)
    assert serve(trainers, max_wait_secs=0.1) == 143
    assert trainers.looks_left > 0


def test_a_second_sigterm_ends_a_server_at_once():
    def is_needed():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        raise ZeroDivisionError

    threading.Timer(0.3, signal.raise_signal, [signal.SIGTERM]).start()
    with pytest.raises(ZeroDivisionError):
        serve_until_sigterm(is_needed)


def test_sigterm_leaves_a_context_as_an_exception_does():
    left = []
    with pytest.raises(SystemExit) as exit_, exits_on_sigterm():  # noqa: PT012
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            left.append(True)
    assert (exit_.value.code, left) == (143, [True])


class Dropping:
    """Gets SIGTERM in its destructor, where Python drops exceptions."""

    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        self.reached = [0 for _ in range(3)]  # the handler is called between instructions


def wait_for_the_signal():
    time.sleep(20)
    raise TimeoutError("the signal was lost")


@pytest.mark.parametrize("context", [exits_on_sigterm, ends_on_sigterm])
def test_a_signal_that_comes_where_python_drops_exceptions_is_not_lost(recwarn, context):
    with pytest.raises(SystemExit) as exit_, context():  # noqa: PT012
        Dropping()
        wait_for_the_signal()
    assert exit_.value.code == 143
    assert not recwarn.list


def test_a_context_that_ends_before_the_signal_comes_again_is_left_by_it():
    with pytest.raises(SystemExit) as exit_, exits_on_sigterm():
        Dropping()
    assert exit_.value.code == 143
    time.sleep(0.2)  # and it does not come any more


def test_other_errors_that_python_drops_are_reported_as_ever(monkeypatch):
    class Failing:
        def __del__(self):
            raise KeyError("in a destructor")

    reported = []
    hook = lambda unraisable: reported.append(unraisable.exc_type)  # noqa: E731
    monkeypatch.setattr(sys, "unraisablehook", hook)
    with exits_on_sigterm():
        Failing()
        assert reported == [KeyError]
    Failing()
    assert reported == [KeyError, KeyError]
    assert sys.unraisablehook is hook
