"""The number of batches that a session call evaluates."""

import contextlib

import pytest
import tensorflow.compat.v1 as tf1

from estimator_core.execution.loops.in_graph_loop import ManySteps
from estimator_core.execution.single_device import SingleDevice
from estimator_core.graphs.batch_runner import BatchRunner
from tests.estimator_core.programs import Calls


@pytest.fixture
def program(make_estimator, eval_input_fn):
    """Returns a function from the settings of an Execution to the program of an evaluation."""

    def make(most, secs=None):
        execution = SingleDevice(many_steps=ManySteps(most, secs))
        endless = lambda: eval_input_fn().repeat()  # noqa: E731
        return make_estimator().build_program("eval", endless, False, execution)

    return make


def calls(program, steps, hooks=(), secs_a_batch=0.01, most_calls=20):
    """The number of batches of each session call, by a clock of our own."""
    made, now = [], [0.0]
    step = program.step

    def advance(session, batches):
        step.advance(session, batches)
        made.append(batches)
        now[0] += batches * secs_a_batch

    program = type(program)(**{**vars(program), "step": step._replace(advance=step.advance and advance)})
    with program.scope():
        runner = BatchRunner(program, [*program.inputs.hooks, *hooks], steps, lambda: now[0])
        with contextlib.suppress(StopIteration), tf1.train.MonitoredSession(hooks=runner.hooks) as session:
            while not session.should_stop() and len(made) < most_calls:
                runner(session)
    return made, runner.done


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("execution", "steps", "made", "done"),
    [
        ((5,), 17, [1] * 17, 17),
        ((7,), 100, [7, 3] * 10, 100),  # it logs after each ten
        ((1,), 13, [], 13),  # which the session runs
        ((1000, 0.2), None, [1, 20, 20, 20], 61),
    ],
    ids=["a log after each batch", "a number", "one", "a time"],
)
def test_the_batches_of_each_call(program, execution, steps, made, done):
    assert calls(program(*execution), steps, most_calls=20 if steps else 4) == (made, done)


def test_a_hook_around_batches_makes_it_one_a_call(program):
    hook = Calls()
    assert calls(program(7), 13, [hook]) == ([], 13)
    assert hook.calls == 13
