"""The notebook, cell by cell, as a notebook's kernel runs them."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT

NOTEBOOK = ROOT / "pipelines" / "examples" / "first_prediction.ipynb"

# As in a kernel, sys.stderr is a stream of text without a file.
RUNNER = """
import io, json, sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
sources, sys.stderr = json.load(sys.stdin), io.StringIO()
for source in sources:
    shell.run_cell(source).raise_error()
print(json.dumps(sys.stderr.getvalue()))
print(json.dumps(shell.user_ns["answers"].to_dict("list")))
print(json.dumps(shell.user_ns["new"]["diagnosis"].to_list()))
"""


def code_cells():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run(sources, folder):
    """Runs cells in a new process."""
    return subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(sources),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_notebook_has_no_outputs():
    assert [(cell["outputs"], cell["execution_count"]) for cell in code_cells()] == [([], None)] * 6


@pytest.mark.more
def test_the_cells_lead_from_a_frame_to_a_prediction(tmp_path):
    cells = [cell for cell in code_cells() if "install" not in cell["metadata"].get("tags", ())]
    ran = run(["".join(cell["source"]) for cell in cells], tmp_path)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    assert "binary problem: 'diagnosis' with 2 classes" in ran.stdout  # the plan
    assert re.search(r"^pushed 0\.9\d+$", ran.stdout, re.MULTILINE)
    assert re.search(r"<run 2\S+ in \S*tumours_root: pushed>", ran.stdout)
    shown, answers, diagnoses = map(json.loads, ran.stdout.splitlines()[-3:])
    progress = [line.split()[1] for line in shown.splitlines() if line.startswith("✓")]
    assert progress[:2] == ["CsvExampleGen", "StatisticsGen"]
    assert progress[-4:] == ["Trainer", "Evaluator", "ServingCheck", "Pusher"]
    assert {"class", "probability"} <= {*answers}
    right = sum(one == other for one, other in zip(answers["class"], diagnoses, strict=True))
    assert right >= 8  # of 10; the more frequent class is right in about 6
