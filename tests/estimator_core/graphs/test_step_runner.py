"""The number of steps that a session call makes."""

import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.base import Step
from estimator_core.graphs.step_runner import StepRunner
from tests.estimator_core.programs import Calls


class Declares(est.SessionRunHook):
    """A hook that is due every `every` steps."""

    def __init__(self, every):
        self.every = every
        self.skipped = []
        self.called_at = []

    def steps_until_due(self, global_step):
        return None if self.every is None else self.every - global_step % self.every

    def skip_steps(self, steps):
        self.skipped.append(steps)

    def after_run(self, run_context, run_values):
        step = tf1.train.get_global_step(run_context.session.graph)
        self.called_at.append(int(run_context.session.run(step)))


def program_of(train_op, advance, most=8, secs=None, prepare=None):
    """The parts of a Program that a StepRunner uses."""
    return types.SimpleNamespace(
        graph=tf1.get_default_graph(),
        fetches=train_op,
        step=Step(None, advance, prepare),
        execution=types.SimpleNamespace(steps_per_session_run=most, session_call_secs=secs),
    )


def run(hooks, calls, most=8, start=0):
    """Lets a counter run for some session calls; returns the arguments of `advance`."""
    advanced = []
    with tf.Graph().as_default():
        step = tf1.train.create_global_step()
        train_op = step.assign_add(1)

        def advance(session, count):
            advanced.append(count)
            for _ in range(count):
                session.run(train_op)

        runner = StepRunner(program_of(train_op.op, advance, most), hooks)
        creator = tf1.train.ChiefSessionCreator(tf1.train.Scaffold(init_op=step.assign(start)))
        with tf1.train.MonitoredSession(creator, [runner, *hooks]) as session:
            for _ in range(calls):
                runner(session)
            return advanced, session.run_step_fn(lambda step_context: int(step_context.session.run(step)))


def test_as_many_steps_as_the_execution_can():
    # The first step of a session is made alone, to see how the model counts.
    assert run([Declares(None)], calls=3) == ([7, 7], 17)


def test_the_nearest_hook_decides():
    often, seldom = Declares(3), Declares(5)
    advanced, step = run([often, seldom], calls=6)
    # After the first, due at 3, 5, 6, 9, 10: 1, 1, 0, 2 and 0 steps are made before without a hook.
    assert (advanced, step) == ([1, 1, 2], 10)
    assert often.called_at == seldom.called_at == [1, 3, 5, 6, 9, 10]
    assert often.skipped == [1, 1, 2]


def test_it_begins_where_the_session_does():
    hook = Declares(10)
    assert run([hook], calls=3, most=8, start=17) == ([1, 7], 28)
    assert hook.called_at == [18, 20, 28]


def test_a_hook_that_declares_nothing_is_called_at_every_step():
    assert run([Declares(None), Calls()], calls=4) == ([], 4)


@pytest.mark.parametrize("most", [1, 2])
def test_never_more_than_the_execution_says(most):
    advanced, step = run([Declares(100)], calls=3, most=most)
    assert (advanced, step) == ([most - 1] * 2 if most > 1 else [], 1 + 2 * most)


@pytest.mark.parametrize(
    ("found", "goes_on"), [([5, 6], True), ([6, 7], True), ([5, 7], True), ([4], False), ([7], False)]
)
def test_the_step_is_read_before_its_update_or_after_it(graph, caplog, found, goes_on):
    """TensorFlow leaves open which; any other value is of a model that counts in its own way."""
    tf1.train.create_global_step()
    runner = StepRunner(program_of(None, lambda session, count: None), [])
    values = iter([4, 5])  # at the start, and after the first step
    session = types.SimpleNamespace(run=lambda fetch: next(values))
    context = types.SimpleNamespace(session=session)
    runner.after_create_session(session, None)
    runner.after_run(context, types.SimpleNamespace(results=None))
    for step in found:
        runner.after_run(context, types.SimpleNamespace(results=step))
    # The step is asked for as long as several are made in a session call.
    assert (runner.before_run(context) is not None) == goes_on
    assert ("does not grow by 1" in caplog.text) == (not goes_on)


class Answers(Declares):
    """A hook that always gives the same answer when asked for the steps until it is due."""

    def __init__(self, answer):
        super().__init__(None)
        self.answer = answer

    def steps_until_due(self, global_step):
        return self.answer

    def __repr__(self):
        return "<the hook Answers>"


@pytest.mark.parametrize("answer", [np.int64(3), np.float32(3.0), 3.0])
def test_a_whole_number_of_steps_may_be_of_any_type(answer):
    advanced, step = run([Answers(answer)], calls=3)
    assert (advanced, step) == ([2, 2], 7)
    assert all(type(count) is int for count in advanced)


@pytest.mark.parametrize("answer", [0, -1, -3, np.int64(0), 2.5, float("nan"), "3"])
def test_any_other_answer_is_refused_by_name(answer):
    with pytest.raises(ValueError, match="whole number of steps") as refused:
        run([Declares(None), Answers(answer)], calls=3)
    assert f"Received: {answer!r} at global step 1 from <the hook Answers>" in str(refused.value)


def timed(secs_of, calls, most=100):
    """Lets a counter run for calls of about 2 seconds; returns the arguments of `advance`.

    Args:
        secs_of: Function from the global step to the seconds of the next step.
    """
    asked = []
    now = 0.0
    with tf.Graph().as_default():
        train_op = tf1.train.create_global_step().assign_add(1)

        def advance(session, count):
            nonlocal now
            asked.append(count)
            for _ in range(count):
                now += secs_of(int(session.run(train_op)))

        runner = StepRunner(program_of(train_op.op, advance, most, secs=2.0), [], clock=lambda: now)
        with tf1.train.MonitoredSession(hooks=runner.hooks) as session:
            for _ in range(calls):
                runner(session)
    return asked


def test_a_call_takes_about_so_long():
    # The first step is made alone; then one is measured, which tells that 20 steps take 2 seconds.
    assert timed(lambda step: 0.1, calls=4) == [1, 19, 19]
    assert timed(lambda step: 0.001, calls=3) == [1, 99]  # but no more steps than at most


def test_one_slow_step_does_not_slow_down_for_good():
    asked = timed(lambda step: 30.0 if step == 2 else 0.1, calls=12)
    assert asked[:5] == [1] * 5  # it is among the five that say how long a step takes
    assert asked[-1] == 19


@pytest.mark.parametrize(
    ("secs", "hooks", "expected"),
    [
        (2.0, [], 1),
        (2.0, [est.StopAtStepHook(num_steps=199)], 0),
        (2.0, [est.StopAtStepHook(num_steps=200)], 1),
        (2.0, [est.StopAtStepHook(last_step=150)], 0),
        (None, [est.StopAtStepHook(last_step=150)], 1),
        (None, [est.FeedFnHook(dict)], 0),
    ],
)
def test_a_loop_is_built_where_it_pays(graph, secs, hooks, expected):
    prepared = []
    tf1.train.create_global_step()
    program = program_of(None, lambda session, count: None, secs=secs, prepare=lambda: prepared.append(1))
    StepRunner(program, hooks).begin()
    assert len(prepared) == expected
