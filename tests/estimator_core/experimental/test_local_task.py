"""One process of a local cluster."""

import json
from multiprocessing.connection import wait

import pytest

from estimator_core.experimental.local_task import LocalTask
from tests.estimator_core.cluster import programs

TF_CONFIG = json.dumps({"task": {"type": "evaluator", "index": 0}})


@pytest.fixture
def outcome_of(tmp_path):
    """Runs a function in a process; returns the task, how it failed, and its log."""
    tasks = []

    def run(fn):
        log = tmp_path / "task.log"
        task = LocalTask(fn, "chief", 3, TF_CONFIG, str(log))
        tasks.append(task)
        task.start()
        wait([task.outcome])
        failure = task.receive()
        task.join()
        task.end(5)
        return task, failure, log.read_text()

    yield run
    for task in tasks:
        task.kill()


def test_it_returns_what_the_function_returns(outcome_of):
    task, failure, log = outcome_of(programs.print_and_return)
    assert (task.name, failure, task.has_returned) == ("chief 3", None, True)
    assert task.result == ["evaluator 0", {"a": 1}]
    assert log.splitlines() == ["printed", "from C"]
    assert task.join() == 0


@pytest.mark.slow
def test_a_process_that_dies_without_a_word_is_a_failure(outcome_of):
    task, failure, log = outcome_of(programs.die)
    assert not task.has_returned
    assert failure.message == (
        "Its process ended with exit code 7. The last lines of its log:\n\nabout to die\n"
    )
    assert failure.exception is None
    assert log == "about to die\n"


@pytest.mark.slow
def test_what_can_not_be_pickled_is_a_failure_with_its_traceback(outcome_of):
    task, failure, _ = outcome_of(programs.return_what_can_not_be_pickled)
    assert "pickle" in failure.message
    assert not task.has_returned
    assert task.join() == 1


@pytest.mark.slow
def test_an_exit_code_is_kept(outcome_of):
    task, failure, _ = outcome_of(programs.exit_with_5)
    assert task.join() == 5
    assert isinstance(failure.exception, SystemExit)
