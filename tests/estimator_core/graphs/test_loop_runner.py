"""Hooks are called around loops of steps, whose number follows a pace."""

import types

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.base import LoopSize, Step
from estimator_core.execution.loops.in_graph_loop import RepeatedStep
from estimator_core.graphs.loop_runner import LoopRunner, Pace
from estimator_core.hooks.host_call import HostCallHook
from tests.estimator_core.programs import AfterEachRun


class Seen(est.SessionRunHook):
    """The global step before and after each call, and the tensor that it fetches."""

    def __init__(self, fetched):
        self._fetched = fetched
        self.before, self.after, self.fetched = [], [], []

    def before_run(self, run_context):
        self.before.append(self._step(run_context))
        return est.SessionRunArgs(self._fetched)

    def after_run(self, run_context, run_values):
        self.after.append(self._step(run_context))
        self.fetched.append(run_values.results)

    def _step(self, run_context):
        return int(run_context.session.run(tf1.train.get_global_step(run_context.session.graph)))


def run(size, calls=None, last_step=None, host_call_every=1, secs=1.0, losses=None, repeats=False):
    """Trains a model whose loss is the number of the step, from 1; returns the values that hooks saw.

    A step takes a second, and the other hooks after a loop take a hundred.
    """
    now = [0.0]

    def passes(secs, value=None):
        now[0] += secs
        return value

    with tf.Graph().as_default() as graph:
        step = tf1.train.create_global_step()
        counted = tf1.py_func(lambda step: passes(secs, step), [step.assign_add(1)], tf.int64)
        loss = counted if losses is None else tf.gather(losses, counted - 1)
        noted = []
        note = lambda step: tf1.py_func(lambda step: noted.append(int(step)), [step], [])  # noqa: E731
        host_call = HostCallHook(note, [counted], host_call_every)
        host_call.call([counted])
        repeated = RepeatedStep(est.EstimatorSpec("train", loss=loss, train_op=counted.op))
        program = types.SimpleNamespace(
            graph=graph,
            fetches=[counted.op, loss],
            step=Step(None, repeated, None, repeated.last_loss) if repeats else Step(None),
            spec=types.SimpleNamespace(loss=loss),
            execution=types.SimpleNamespace(loop_size=size),
        )
        seen = Seen(loss)
        hooks = [seen, *([] if repeats else [host_call]), AfterEachRun(lambda _: passes(100.0))]
        if last_step:
            hooks.append(tf1.train.StopAtStepHook(last_step=last_step))
        runner = LoopRunner(program, hooks, lambda: now[0])
        returned = []
        with tf1.train.MonitoredSession(hooks=runner.hooks) as session:
            while not session.should_stop() and (calls is None or len(returned) < calls):
                returned.append(runner(session)[1])
    return seen, noted, returned


@pytest.mark.parametrize("repeats", [False, True])
def test_hooks_are_called_around_a_loop(repeats):
    seen, _, returned = run(LoopSize(3), calls=3, repeats=repeats)
    assert seen.before == [0, 3, 6]
    assert seen.after == seen.fetched == returned == [3, 6, 9]


def test_the_last_loop_is_shorter():
    seen, _, _ = run(LoopSize(3), last_step=8)
    assert seen.after == [3, 6, 8]
    assert run(LoopSize(5), last_step=4)[0].after == [4]
    assert run(LoopSize(1), last_step=3)[0].after == [1, 2, 3]


@pytest.mark.parametrize(("every", "steps"), [(1, list(range(1, 9))), (3, [1, 4, 7])])
def test_a_host_call_runs_in_steps_of_a_loop(every, steps):
    _, noted, _ = run(LoopSize(4), last_step=8, host_call_every=every)
    assert noted == steps


def test_loops_of_a_time():
    """A step takes 2 seconds; the time of hooks after a loop does not count."""
    seen, _, _ = run(LoopSize(secs=9.0), last_step=12, secs=2.0)
    # One step, then round(9 / 2) = 4 at a time, and the 3 that are left.
    assert seen.after == [1, 5, 9, 12]


def test_a_pace_follows_the_last_five_loops():
    pace = Pace(LoopSize(secs=10.0))
    assert pace.next_steps() == 1
    pace.add(1, 5.0)  # the first step is slow
    assert pace.next_steps() == 2
    pace.add(9, 5.0)
    assert pace.next_steps() == 10  # 10 steps in 10 seconds
    for _ in range(5):
        pace.add(1, 40.0)
    assert pace.next_steps() == 1  # one step takes longer than a loop shall
    assert Pace(LoopSize(7)).next_steps() == 7


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_loss_that_is_nan_within_a_loop_ends_training_at_its_step(repeats, step):
    losses = [1.0, 2.0, 3.0, 4.0]
    losses[step - 1] = float("nan")
    with pytest.raises(est.NanLossDuringTrainingError, match=f"at global step {step}"):
        run(LoopSize(4), calls=1, losses=losses, repeats=repeats)
