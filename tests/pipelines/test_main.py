import subprocess
import sys


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
