"""The steps at which hooks of TensorFlow, and of users, have to be called."""

import types
from unittest import mock

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.hooks.intervals import find_interval, steps_until_multiple
from estimator_core.hooks.stop_at_checkpoint_step import StopAtCheckpointStepHook


@pytest.mark.parametrize(
    ("count", "every", "expected"),
    # Calls are numbered from 0, and due are those with a number divisible by `every`.
    [(0, 4, 1), (1, 4, 4), (3, 4, 2), (4, 4, 1), (5, 1, 1), (2, None, None), (2, 0, None)],
)
def test_steps_until_multiple(count, every, expected):
    assert steps_until_multiple(count, every) == expected


class EveryTen(est.SessionRunHook):
    """Declares an interval for its work after a step."""

    def steps_until_due(self, global_step):
        return 10 - global_step % 10

    def skip_steps(self, steps):
        pass

    def after_run(self, run_context, run_values):
        pass


def subclass(base, *names, **methods):
    """A subclass that overrides methods, those that are only named by doing nothing."""
    return type("Hook", (base,), {name: lambda self, *args: None for name in names} | methods)


def every_five(self, global_step):
    return 5 - global_step % 5


@pytest.mark.parametrize(
    ("hook", "steps"),
    [
        (subclass(est.SessionRunHook, "end")(), None),
        (est.FinalOpsHook([]), None),
        (subclass(est.StopAtStepHook, "end")(last_step=10), 6),
        (EveryTen(), 6),
        (subclass(EveryTen, "end")(), 6),
        (subclass(EveryTen, "after_run", steps_until_due=every_five)(), 1),
    ],
    ids=[
        "at the end",
        "final operations",
        "a subclass that works elsewhere",
        "declares",
        "at the end too",
        "anew",
    ],
)
def test_a_hook_that_says_when_is_due_then(hook, steps):
    assert find_interval(hook).steps_until_due(4) == steps


@pytest.mark.parametrize(
    "make",
    [
        subclass(est.SessionRunHook, "before_run"),
        subclass(est.SessionRunHook, "after_run"),
        lambda: mock.MagicMock(spec=est.SessionRunHook),
        lambda: mock.MagicMock(spec=est.StopAtStepHook),
        lambda: subclass(est.StopAtStepHook, "after_run")(last_step=10),
        subclass(est.SessionRunHook, "after_run", steps_until_due=every_five),
    ],
    ids=[
        "before_run",
        "after_run",
        "mock",
        "mock that says when",
        "subclass that does more",
        "half a declaration",
    ],
)
def test_a_hook_that_does_not_say_when_is_due_at_every_step(make):
    assert find_interval(make()) is None


@pytest.mark.parametrize("name", ["before_run", "after_run"])
@pytest.mark.parametrize(
    "make",
    [
        EveryTen,
        lambda: est.StopAtStepHook(last_step=10),
        lambda: est.experimental.make_early_stopping_hook(
            types.SimpleNamespace(config=est.RunConfig()), bool, None, run_every_steps=10
        ),
        est.SessionRunHook,
    ],
    ids=["declares", "of_tensorflow", "of_the_core", "does_nothing"],
)
def test_a_call_of_its_own_is_due_at_every_step(make, name):
    hook = make()
    assert find_interval(hook) is not None
    overridden = type("Overridden", (type(hook),), {name: lambda self, *args: None})
    hook.__class__ = overridden
    assert find_interval(hook) is None
    hook = make()
    setattr(hook, name, lambda *args: None)
    assert find_interval(hook) is None


@pytest.mark.parametrize("hook", [est.StopAtStepHook(last_step=10), StopAtCheckpointStepHook("model", 10)])
def test_a_stop_hook_is_due_at_its_last_step(hook):
    interval = find_interval(hook)
    assert [interval.steps_until_due(step) for step in (0, 7, 9, 10, 12)] == [10, 3, 1, 1, 1]


def with_timer(hook, last):
    hook._timer.update_last_triggered_step(last)
    return find_interval(hook)


def test_hooks_that_go_by_time_are_due_once_it_is_over(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    interval = with_timer(est.CheckpointSaverHook("unused", save_secs=60, saver=object()), 12)
    assert interval.steps_until_due(12) is None
    now += 61
    assert interval.steps_until_due(12) == 1


def test_summaries_count_on_the_next_step():
    hook = est.SummarySaverHook(save_steps=5, output_dir="unused", summary_op=object())
    hook._next_step = None  # as its begin() has it
    interval = find_interval(hook)
    interval.skip_steps(3)  # before the first call there is nothing to count on from
    assert hook._next_step is None
    check_counting(hook, interval)


def check_counting(hook, interval):
    assert interval.steps_until_due(0) == 1  # the first step starts the count
    hook._timer.update_last_triggered_step(1)
    hook._next_step = 2
    assert interval.steps_until_due(1) == 5
    interval.skip_steps(4)
    assert hook._next_step == 6
    assert hook._timer.should_trigger_for_step(hook._next_step)


@pytest.mark.parametrize("every", [6, 5.5])
def test_a_timer_is_due_at_a_whole_step(every):
    interval = with_timer(est.StepCounterHook(every_n_steps=every, output_dir="unused"), 12)
    assert [interval.steps_until_due(step) for step in (12, 17, 18)] == [6, 1, 1]


def test_profiles_count_on_the_next_step(tmp_path, graph):
    tf1.train.create_global_step()
    hook = est.ProfilerHook(save_steps=5, output_dir=str(tmp_path))
    tf1.summary.FileWriterCache.clear()
    hook.begin()
    check_counting(hook, find_interval(hook))


def test_waiting_for_the_global_step_is_due_until_it_is_over(graph):
    tf1.train.create_global_step()
    hook = est.GlobalStepWaiterHook(wait_until_step=0)
    hook.begin()
    interval = find_interval(hook)
    assert interval.steps_until_due(7) == 1
    hook.before_run(None)
    assert interval.steps_until_due(7) is None


def test_logging_counts_calls():
    hook = est.LoggingTensorHook(["x"], every_n_iter=4)
    hook._timer.reset()
    hook._iter_count = 0
    interval = find_interval(hook)
    assert interval.steps_until_due(100) == 1
    hook._timer.update_last_triggered_step(0)
    hook._iter_count = 1
    assert interval.steps_until_due(101) == 4
    interval.skip_steps(3)
    assert hook._iter_count == 4
    assert interval.steps_until_due(104) == 1
    at_the_end_alone = est.LoggingTensorHook(["x"], at_end=True)
    at_the_end_alone._iter_count = 3
    assert find_interval(at_the_end_alone).steps_until_due(3) is None


class CountsSteps(est.StepCounterHook):
    """Notes the steps at which it would write."""

    def __init__(self, every_n_steps):
        super().__init__(every_n_steps, output_dir="unused", summary_writer=object())
        self.fired = []

    def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
        self.fired.append(int(global_step))


class Foreseen(est.SessionRunHook):
    """Asks another hook before each step for the next one that it is due at."""

    def __init__(self, interval):
        self._interval = interval
        self.due = []

    def begin(self):
        self.step = 0

    def before_run(self, run_context):
        self.due.append(self.step + self._interval.steps_until_due(self.step))

    def after_run(self, run_context, run_values):
        self.step += 1


def run(hook, steps=11):
    """Runs a hook for some steps; returns its announcements before each of them."""
    with tf.Graph().as_default():
        train_op = tf1.train.create_global_step().assign_add(1)
        tf.constant(7.0, name="seven")
        foreseen = Foreseen(find_interval(hook))
        with tf1.train.MonitoredSession(hooks=[hook, foreseen]) as session:
            while not session.should_stop() and foreseen.step < steps:
                session.run(train_op)
    return foreseen.due


def next_of(fired, steps):
    """Returns for each step the next one at which a hook was due."""
    return [min(step for step in fired if step > before) for before in range(steps)]


def test_checkpoints_are_foreseen(tmp_path):
    fired = []
    save = {"after_save": lambda self, session, step: fired.append(int(step))}
    listener = type("Listener", (est.CheckpointSaverListener,), save)()
    due = run(est.CheckpointSaverHook(str(tmp_path), save_steps=4, listeners=[listener]))
    assert fired == [0, 4, 8, 11]  # the last one at the end
    assert due == next_of([4, 8, 12], 11)


def test_counts_of_steps_are_foreseen():
    hook = CountsSteps(3)
    due = run(hook)
    assert hook.fired == [4, 7, 10]  # the first step starts the clock
    assert due == next_of([1, 4, 7, 10, 13], 11)


def test_lines_of_tensors_are_foreseen():
    fired = []
    hook = est.LoggingTensorHook(
        {"seven": "seven:0"}, every_n_iter=4, formatter=lambda values: fired.append(values) or ""
    )
    due = run(hook)
    assert len(fired) == 3
    assert due == next_of([1, 5, 9, 13], 11)
