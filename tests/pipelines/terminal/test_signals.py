"""A signal at any moment of a run ends in the line of JSON and exit code 130."""

import json
import subprocess
import sys

import pytest

from pipelines.terminal.signals import RunInterruptedError, came_from_signal

# Sends a signal to itself when a module is about to be imported: what is imported when is known.
PROGRAM = """
import os, signal, sys

class Sender:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), getattr(signal, number))

module, number = sys.argv[1:3]
sys.argv[1:3] = []
sys.meta_path.insert(0, Sender())
from pipelines.__main__ import main
main()
"""


def run_and_interrupt(module, number, *arguments):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, module, number, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


MOMENTS = ["pipelines.cli.app", "typer", "pipelines.plan.run_plan", "pydantic", "pyarrow", "tfx"]
SLOW = {("pyarrow", "SIGINT"), ("tfx", "SIGINT")}  # both import TensorFlow before


@pytest.mark.parametrize(
    ("module", "number"),
    [
        pytest.param(module, number, marks=pytest.mark.slow if (module, number) in SLOW else ())
        for module in MOMENTS
        for number in ("SIGINT", "SIGTERM")
    ],
)
def test_a_signal_ends_in_the_last_line(data, tmp_path, module, number):
    result = run_and_interrupt(
        module, number, "run", "--data", data, "--label", "y", "--root", tmp_path / "root"
    )
    assert result.returncode == 130
    assert "Traceback" not in result.stderr
    (line,) = result.stdout.splitlines()
    line = json.loads(line)
    assert set(line) >= {"run_id", "status", "version", "metrics", "report"}
    assert (line["status"], line["version"]) == ("interrupted", None)
    assert (line["run_id"] is not None) == (module == "tfx")  # by then there is a record


def test_other_commands_have_no_last_line(tmp_path):
    result = run_and_interrupt("typer", "SIGTERM", "runs", "--json", "--root", tmp_path)
    assert (result.returncode, result.stdout) == (130, "")


def test_a_signal_is_told_from_what_users_raise():
    def leave_at_a_signal():
        try:
            raise RunInterruptedError("SIGTERM")
        except KeyboardInterrupt:
            raise SystemExit(0)  # noqa: B904  As code does that tidies up and leaves.

    with pytest.raises(SystemExit) as leaving:
        leave_at_a_signal()
    assert came_from_signal(leaving.value)
    looping = ValueError()
    looping.__context__ = KeyError()
    looping.__context__.__context__ = looping
    for error in (KeyboardInterrupt(), SystemExit(0), None, looping):
        assert not came_from_signal(error)
