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


@pytest.mark.sampled(1)
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


def run_without(name):
    """Runs `python -m pipelines --help` where a module cannot be found."""
    program = (
        "import runpy, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {name!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv[1:] = ['--help']\n"
        "runpy.run_module('pipelines', run_name='__main__')\n"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_outside_of_the_environment_it_says_how_to_get_in():
    ran = run_without("typer")
    assert ran.returncode == 1
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert line.startswith("The Python package 'typer' is missing")
    assert "the commands need the extra `pipelines`." in line
    assert "run `make setup`, then `.venv/bin/python -m pipelines`; docs/install.md" in line


def test_a_module_of_ours_that_is_missing_is_a_fault():
    ran = run_without("pipelines.cli.options")
    assert "Traceback" in ran.stderr
    assert "make setup" not in ran.stderr


@pytest.mark.more
def test_a_reader_that_has_gone_does_not_change_the_exit_code(tmp_path):
    command = '"$0" -m pipelines run --data none.csv --label y --root "$1" | true'
    ran = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}", sys.executable, tmp_path / "root"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith("✗ There is no file or folder none.csv")
