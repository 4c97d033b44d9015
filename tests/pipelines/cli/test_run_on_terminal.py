"""The last lines of `run`, on a terminal and elsewhere; the run itself is a record that was made before."""

import json
import os
import pathlib
import pty
import subprocess
import sys

import pytest

from pipelines.root import Root

PROJECT = pathlib.Path(__file__).parents[3]

# The run's own module would import TFX; `run` only asks it for the record.
SCRIPT = """
import sys, types
from pathlib import Path
from pipelines.root import Root
record = Root(Path("root")).records.read_all()[0]
sys.modules["pipelines.runs.run"] = types.SimpleNamespace(run=lambda *given: record)
import pipelines.__main__
sys.argv[1:] = ["run", "--data", "data.csv", "--label", "y", "--root", "root"]
pipelines.__main__.main()
"""


@pytest.fixture
def pushed(killed, tmp_path):
    """A record of a run that has pushed version 5, in `tmp_path / "root"`."""
    report = str(tmp_path / "root" / "runs" / "run.html")
    Root(tmp_path / "root").records.write(killed.changed(status="pushed", version="5", report=report))


def run(folder, stdout):
    streams = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder, env=environment, text=True, **streams)


@pytest.mark.more
@pytest.mark.usefixtures("pushed")
def test_a_terminal_shows_what_to_do_next(tmp_path):
    ours, theirs = pty.openpty()
    try:
        done = run(tmp_path, theirs)
        assert done.returncode == 0, done.stderr
        lines = os.read(ours, 10_000).decode().splitlines()
    finally:
        os.close(ours)
        os.close(theirs)
    steps = ["look at the report", "get predictions", "serve the model"]
    assert [line.partition(":")[0] for line in lines] == steps
    assert lines[1].endswith("predict --root root --data NEW.csv")


@pytest.mark.more
@pytest.mark.usefixtures("pushed")
def test_a_program_gets_one_json_object(tmp_path):
    done = run(tmp_path, subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert (line["status"], line["version"]) == ("pushed", "5")
