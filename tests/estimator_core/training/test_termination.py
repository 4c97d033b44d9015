"""SIGTERM during a training in this process."""

import signal
import threading

import pytest
import tensorflow as tf

from estimator_core.training.termination import SIGTERM_EXIT_CODE, ends_on_sigterm

tf1 = tf.compat.v1


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
    with pytest.raises(SystemExit) as exit_, ends_on_sigterm() as hooks:  # noqa: PT012
        sigterm = SigtermAt(4)
        hooks = [sigterm, *hooks] if is_first else [*hooks, sigterm]
        estimator.train(input_fn, hooks=hooks, max_steps=100)
    assert exit_.value.code == SIGTERM_EXIT_CODE == 143
    # A hook that was called before the signal came stops the training after the next step.
    assert estimator.get_variable_value("global_step") == (4 if is_first else 5)


def test_a_training_without_a_signal_ends_as_ever(make_estimator, input_fn):
    estimator = make_estimator()
    with ends_on_sigterm() as hooks:
        estimator.train(input_fn, hooks=hooks, steps=3)
    assert len(hooks) == 1
    assert estimator.get_variable_value("global_step") == 3


def test_without_a_session_the_process_ends_at_once():
    with pytest.raises(SystemExit) as exit_, ends_on_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert exit_.value.code == 143


def test_a_handler_of_the_program_stays():
    calls = []
    signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    with ends_on_sigterm() as hooks:
        signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert (hooks, calls) == ([], [signal.SIGTERM])


def test_a_thread_can_not_handle_signals():
    found = []

    def enter():
        with ends_on_sigterm() as hooks:
            found.append(hooks)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [[]]
