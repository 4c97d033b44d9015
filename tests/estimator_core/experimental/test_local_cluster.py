"""Processes of a local cluster: their failures, their end, their output and their ports."""

import functools
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys

import pytest

from estimator_core.experimental import LocalClusterError, launch_local_cluster
from estimator_core.experimental.local_cluster import free_ports
from tests.integration.cluster import programs
from tests.integration.cluster.programs import files, wait_until


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()


def pids_in(root):
    return [int((root / f"pid.{name}").read_text() or 0) for name in files(root, "pid.")]


@pytest.mark.more
def test_the_first_failure_ends_all_and_has_its_own_traceback(tmp_path, capsys):
    job = functools.partial(programs.fail_in_the_worker, str(tmp_path))
    with pytest.raises(LocalClusterError) as error:
        launch_local_cluster(job, num_workers=2, num_ps=1)
    assert error.value.task == "worker 0"
    assert "in fail_in_the_worker" in str(error.value)
    assert type(error.value.__cause__) is KeyError
    assert error.value.__cause__.args == ("what the worker did wrong",)
    assert len(pids_in(tmp_path)) == 3
    assert not any(map(is_running, pids_in(tmp_path)))
    assert "[worker 0] about to fail\n" in capsys.readouterr().err
    assert "TF_CONFIG" not in os.environ


@pytest.mark.slow
def test_an_evaluator_ends_with_the_last_checkpoint_when_training_ends_before_max_steps(tmp_path):
    job = functools.partial(programs.train_to_the_end_of_the_input, str(tmp_path))
    results = launch_local_cluster(job, evaluator=True, log_dir=tmp_path / "logs")
    assert results.chief == "the chief"
    metrics, _ = results.evaluator
    assert metrics["global_step"] == 6


SCRIPT = """
import functools, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from estimator_core.experimental import launch_local_cluster
from tests.integration.cluster import programs

if __name__ == "__main__":
    job = functools.partial(programs.wait_for_long, sys.argv[1])
    launch_local_cluster(job, num_workers=2, num_ps=1, evaluator=True, grace_secs=5)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_one_that_launched_it(tmp_path, number):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    launcher = subprocess.Popen([sys.executable, script, tmp_path], env=environment, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: len(pids_in(tmp_path)) == 4 and all(pids_in(tmp_path)))
        launcher.send_signal(number)
        _, printed = launcher.communicate(timeout=60)
    finally:
        launcher.kill()
    wait_until(lambda: not any(map(is_running, pids_in(tmp_path))), 20)
    assert (b"KeyboardInterrupt" in printed) is (number == signal.SIGINT)
    assert printed.count(b"Traceback") <= 1  # none from the tasks


@pytest.mark.parametrize(
    ("fn", "sizes", "error", "message"),
    [
        (print, {"num_workers": 0}, ValueError, "num_workers=0"),
        (print, {"num_ps": -1}, ValueError, "num_ps=-1"),
        (3, {}, TypeError, "fn must be a function"),
        (lambda: None, {}, TypeError, "fn must be picklable"),  # it has no name to import
    ],
)
def test_arguments_that_are_refused(fn, sizes, error, message):
    with pytest.raises(error, match=message):
        launch_local_cluster(fn, **sizes)


def test_ports_are_different_and_below_those_of_outgoing_connections():
    ports = free_ports(50)
    assert len(set(ports)) == 50
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 < port < low for port in ports)


def test_a_port_that_is_taken_is_passed_over(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        free = free_ports(1)[0]
        draws = iter([port, free, free, free])
        monkeypatch.setattr(random.SystemRandom, "randint", lambda self, first, last: next(draws))
        assert free_ports(1) == [free]
        with pytest.raises(StopIteration):
            free_ports(2)  # it never gives the same one twice
