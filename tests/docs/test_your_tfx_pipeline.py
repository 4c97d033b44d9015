"""Runs the two files of docs/your-tfx-pipeline.md, as the page prints them."""

import re
import subprocess
import sys

import pytest

from components import load_verdict
from tests.docs.markdown import commands, read

PAGE = read("docs/your-tfx-pipeline.md")
FILES = dict(re.findall(r'```python title="(.*?)"\n(.*?)```', PAGE, re.DOTALL))


def newest(folder):
    return max(folder.iterdir(), key=lambda path: int(path.name))


@pytest.mark.slow
def test_the_definition_pushes_and_the_first_model_is_the_second_runs_baseline(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    generate, run = [words[1:] for words in commands(PAGE) if words[0] == "python"]
    assert {*FILES} == {"taxi_module.py", *run}
    for words in (generate, run, run):
        subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
    assert len([*(tmp_path / "serving").iterdir()]) == 2
    assert (newest(tmp_path / "serving") / "saved_model.pb").is_file()
    evaluations = tmp_path / "root" / "Evaluator" / "evaluation"
    assert load_verdict(str(newest(evaluations))).baseline_metrics["auc"] > 0.7
