import errno
import fcntl
import os
import subprocess
import sys

import pytest

from components.errors import SettingError
from pipelines.errors import BadInputError
from pipelines.root import Root


def test_one_run_at_a_time(tmp_path):
    root = tmp_path / "root"
    assert not Root(root).lock.is_held()
    with Root(root).lock.writing.held():
        assert Root(root).lock.is_held()
        with pytest.raises(BadInputError, match=f"process {os.getpid()}"), Root(root).lock.writing.held():
            pass
    assert not Root(root).lock.is_held()
    with Root(root).lock.writing.held():
        pass


@pytest.mark.more
def test_it_waits_for_another_process(tmp_path):
    root = tmp_path / "root"
    program = (
        "import sys, time; from pathlib import Path; from pipelines.root import Root\n"
        "with Root(Path(sys.argv[1])).lock.writing.held():\n  print('held', flush=True); time.sleep(1)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BadInputError, match="Another run"), Root(root).lock.writing.held():
            pass
        with Root(root).lock.writing.held(wait_secs=60):
            assert Root(root).lock.is_held()


def test_a_local_run_of_the_compiled_pipeline_has_a_lock_of_its_own(tmp_path):
    root = tmp_path / "root"
    Root(root).lock.local_kubeflow.check_free()
    assert not root.exists()
    with Root(root).lock.local_kubeflow.held():
        assert Root(root).lock.is_held()  # between its steps, too
        with Root(root).lock.writing.held():  # as its steps do
            pass
        with pytest.raises(BadInputError, match=f"Another run is in progress in {root} .process"):
            Root(root).lock.local_kubeflow.check_free()
    Root(root).lock.local_kubeflow.check_free()


def test_a_root_on_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fail)
    lock = Root(tmp_path).lock.writing
    with pytest.raises(SettingError, match=f"{tmp_path}/.lock cannot be locked"), lock.held():
        pass
    with pytest.raises(SettingError, match=f"{tmp_path}/.lock cannot be locked"):
        lock.check_free()


def test_a_folder_in_its_place_and_a_full_disk_are_named(tmp_path, monkeypatch):
    lock = Root(tmp_path / "root").lock
    (tmp_path / "root" / ".lock").mkdir(parents=True)
    assert not lock.is_held()
    with (
        pytest.raises(BadInputError, match=r"\.lock cannot be used as a lock: it is not a regular file"),
        lock.writing.held(),
    ):
        pass

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", fail)
    lock = Root(tmp_path).lock.writing
    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/\.lock'"), lock.held():
        pass
