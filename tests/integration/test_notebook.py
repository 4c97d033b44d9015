"""The notebook, cell by cell, as a notebook's kernel runs them."""

import json
import os
import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT

NOTEBOOK = ROOT / "pipelines" / "examples" / "first_prediction.ipynb"

# IPython runs `!` and `%` as a kernel does. A command that fails raises no error there.
RUNNER = """
import json, sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for source in json.load(sys.stdin):
    shell.user_ns.pop("_exit_code", None)
    shell.run_cell(source).raise_error()
    if shell.user_ns.get("_exit_code", 0):
        sys.exit(f"exit code {shell.user_ns['_exit_code']} of {source}")
print(json.dumps(shell.user_ns["answers"].to_dict("list")))
print(json.dumps(shell.user_ns["new"]["diagnosis"].to_list()))
"""


def code_cells():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run(sources, folder):
    """Runs cells in a new process, in which `estimator-pipelines` is that of this Python."""
    return subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(sources),
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "IPYTHONDIR": str(folder / "ipython"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_notebook_has_no_outputs():
    assert [(cell["outputs"], cell["execution_count"]) for cell in code_cells()] == [([], None)] * 5


@pytest.mark.slow
def test_the_cells_lead_from_a_csv_to_a_prediction(tmp_path):
    cells = [cell for cell in code_cells() if "install" not in cell["metadata"].get("tags", ())]
    ran = run(["".join(cell["source"]) for cell in cells], tmp_path)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    answers, diagnoses = map(json.loads, ran.stdout.splitlines()[-2:])
    assert {"class", "probability"} <= {*answers}
    right = sum(one == other for one, other in zip(answers["class"], diagnoses, strict=True))
    assert right >= 8  # of 10; the more frequent class is right in about 6


@pytest.mark.slow
def test_a_command_that_fails_is_seen(tmp_path):
    ran = run(["!estimator-pipelines plan --data none.csv --label y"], tmp_path)
    assert ran.returncode == 1
    assert "exit code 2 of !estimator-pipelines plan" in ran.stderr
