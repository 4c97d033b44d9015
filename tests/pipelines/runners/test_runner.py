"""The contract of every runner."""

import pytest

from pipelines.beam.runners import RUNNERS
from pipelines.errors import RunFailedError

pytestmark = pytest.mark.parametrize("runner", RUNNERS.values(), ids=RUNNERS)


def test_each_component_runs_once_behind_those_that_it_depends_on(runner, launch, calls):
    pipeline = launch("run-1")
    runner.run(pipeline.launcher)
    assert calls == [("First", "good"), ("Second", "good")]
    assert pipeline.events == [("First", "finished"), ("Second", "finished")]


def test_nothing_runs_behind_a_component_that_failed(runner, launch):
    pipeline = launch("run-1", value="bad")
    with pytest.raises(RunFailedError, match="what the user did wrong"):
        runner.run(pipeline.launcher)
    assert pipeline.events == [("First", "failed")]


@pytest.mark.parametrize("value", ["killed at first", "drops a signal"])
def test_an_interruption_ends_the_run(runner, launch, calls, handles_signals, value):
    pipeline = launch("run-1", value=value)
    with handles_signals():
        runner.run(pipeline.launcher)
    assert len(calls) == 1
