import os
import subprocess
import sys

import pytest

from pipelines.errors import BadInputError
from pipelines.root.lock import LOCAL_KUBEFLOW, check_unlocked, is_locked, locked


def test_one_run_at_a_time(tmp_path):
    root = tmp_path / "root"
    assert not is_locked(root)
    with locked(root):
        assert is_locked(root)
        with pytest.raises(BadInputError, match=f"process {os.getpid()}"), locked(root):
            pass
    assert not is_locked(root)
    with locked(root):
        pass


def test_it_waits_for_another_process(tmp_path):
    root = tmp_path / "root"
    program = (
        "import sys, time; from pathlib import Path; from pipelines.root.lock import locked\n"
        "with locked(Path(sys.argv[1])):\n  print('held', flush=True); time.sleep(1)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BadInputError, match="Another run"), locked(root):
            pass
        with locked(root, wait_secs=60):
            assert is_locked(root)


def test_a_local_run_of_the_compiled_pipeline_has_a_lock_of_its_own(tmp_path):
    root = tmp_path / "root"
    check_unlocked(root, LOCAL_KUBEFLOW)
    assert not root.exists()
    with locked(root, name=LOCAL_KUBEFLOW):
        assert is_locked(root)  # between its steps, too
        with locked(root):  # as its steps do
            pass
        with pytest.raises(BadInputError, match=f"Another run is going on in {root} .process"):
            check_unlocked(root, LOCAL_KUBEFLOW)
    check_unlocked(root, LOCAL_KUBEFLOW)
