import os
import subprocess
import sys

import pytest

VARIABLE = "TF_CPP_MIN_LOG_LEVEL"


def test_the_package_runs_as_a_module_and_names_itself_so():
    result = subprocess.run(
        [sys.executable, "-m", "pipelines", "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: python -m pipelines" in result.stdout
    for command in ("run", "runs", "report", "rollback"):
        assert command in result.stdout


def test_an_unknown_command_exits_with_2():
    result = subprocess.run(
        [sys.executable, "-m", "pipelines", "rnu"], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "rnu" in result.stderr


@pytest.mark.parametrize(("given", "level"), [(None, "2"), ("0", "0")])
def test_tensorflow_is_quiet_unless_the_user_has_set_how_loud_it_is(given, level):
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    program = (
        "import os, runpy, sys\nsys.argv[1:] = ['--help']\n"
        "try:\n  runpy.run_module('pipelines', run_name='__main__')\n"
        f"except SystemExit:\n  print('level', os.environ[{VARIABLE!r}])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, **({VARIABLE: given} if given else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == f"level {level}"
