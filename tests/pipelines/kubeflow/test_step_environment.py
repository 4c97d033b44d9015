import os
import stat
import subprocess
import sys

import pytest

from pipelines.kubeflow.step_environment import UMASK_VARIABLE


@pytest.mark.more
@pytest.mark.parametrize(
    ("inherited", "given", "expected"),
    [
        (0, None, 0o644),  # as argoexec starts a container
        (0o077, None, 0o600),
        (0, "002", 0o664),
        (0o077, "0027", 0o640),
    ],
)
def test_the_umask_of_a_step(tmp_path, inherited, given, expected):
    theirs = tmp_path / "theirs"
    theirs.touch()
    theirs.chmod(0o666)
    environment = {**os.environ, **({UMASK_VARIABLE: given} if given else {})}
    subprocess.run(
        [sys.executable, "-m", "pipelines.kubeflow.step", "End", "--root", str(tmp_path), "--run", "run-1"],
        env=environment,
        umask=inherited,
        check=True,
        capture_output=True,
    )
    assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == expected
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o666
