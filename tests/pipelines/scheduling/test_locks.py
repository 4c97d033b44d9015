import subprocess
import sys

import pytest

from pipelines.scheduling.locks import SchedulerBusyError, is_scheduled, scheduler_lock


def test_the_second_scheduler_is_refused(tmp_path):
    assert not is_scheduled(tmp_path)
    with scheduler_lock(tmp_path):
        assert is_scheduled(tmp_path)
        with pytest.raises(SchedulerBusyError, match="Another sch"), scheduler_lock(tmp_path):
            pass
    assert not is_scheduled(tmp_path)
    with scheduler_lock(tmp_path):
        pass


def test_the_scheduler_lock_is_not_inherited(tmp_path):
    with scheduler_lock(tmp_path):
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_scheduled(tmp_path)
    process.kill()
    process.communicate()
