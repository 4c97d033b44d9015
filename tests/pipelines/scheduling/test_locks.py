import os
import subprocess
import sys

import pytest

from pipelines.scheduling.locks import (
    SchedulerBusyError,
    is_run_going_on,
    is_scheduled,
    scheduler_lock,
    take_run_lock,
)


def test_the_second_scheduler_is_refused(tmp_path):
    assert not is_scheduled(tmp_path)
    with scheduler_lock(tmp_path, "schedule run"):
        assert is_scheduled(tmp_path)
        with (
            pytest.raises(SchedulerBusyError, match=rf"schedule run, process {os.getpid()} on"),
            scheduler_lock(tmp_path, "another"),
        ):
            pass
    assert not is_scheduled(tmp_path)
    with scheduler_lock(tmp_path, "another"):
        pass


def test_a_run_holds_its_lock_when_the_scheduler_is_gone(tmp_path):
    lock = take_run_lock(tmp_path)
    words = [sys.executable, "-c", "input()"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=(lock,))
    os.close(lock)
    assert is_run_going_on(tmp_path)
    assert take_run_lock(tmp_path) is None
    process.kill()
    process.communicate()
    assert not is_run_going_on(tmp_path)
    again = take_run_lock(tmp_path)
    assert again is not None
    os.close(again)


def test_the_scheduler_lock_is_not_inherited(tmp_path):
    with scheduler_lock(tmp_path, "schedule run"):
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_scheduled(tmp_path)
    process.kill()
    process.communicate()
