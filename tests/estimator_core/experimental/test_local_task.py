"""One process of a local cluster."""

import json
import multiprocessing.context
import os
import subprocess
import sys
import types
from multiprocessing.connection import wait

import pytest

from estimator_core.experimental.local_task import LocalTask
from tests.integration.cluster import programs

TF_CONFIG = json.dumps({"task": {"type": "evaluator", "index": 0}})


@pytest.fixture
def outcome_of(tmp_path):
    """Runs a function in a process; returns the task, its failure, and its log."""
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


@pytest.mark.more
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


@pytest.mark.more
def test_a_module_that_a_new_process_can_not_import_is_named(outcome_of, monkeypatch):
    here_alone = types.ModuleType("here_alone")
    exec("def train():\n    pass", vars(here_alone))
    monkeypatch.setitem(sys.modules, "here_alone", here_alone)
    task, failure, _ = outcome_of(here_alone.train)
    assert "ModuleNotFoundError: No module named 'here_alone'" in failure.message
    assert isinstance(failure.exception, ModuleNotFoundError)
    assert task.join() == 1


@pytest.mark.slow
def test_a_script_that_starts_a_cluster_when_it_is_imported_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from estimator_core.experimental import launch_local_cluster\n"
        "from tests.integration.cluster import programs\n"
        "launch_local_cluster(programs.die)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, script], env=environment, stderr=subprocess.PIPE, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "current process has finished its bootstrapping phase" in done.stderr
    assert 'below `if __name__ == "__main__":`' in done.stderr
    assert "AttributeError" not in done.stderr


def test_a_process_that_can_not_be_started_is_none(monkeypatch, tmp_path):
    def start(process):
        raise OSError("no more processes")

    task = LocalTask(programs.die, "chief", 0, TF_CONFIG, str(tmp_path / "log"))
    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start)
    with pytest.raises(OSError, match="no more processes"):
        task.start()
    task.terminate()
    task.kill()


@pytest.mark.slow
def test_an_exit_code_is_kept(outcome_of):
    task, failure, _ = outcome_of(programs.exit_with_5)
    assert task.join() == 5
    assert isinstance(failure.exception, SystemExit)
