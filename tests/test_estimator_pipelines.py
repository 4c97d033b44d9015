"""The command, where folders have the names of our packages, and its completion in a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path):
    """A folder with packages `components` and `pipelines` that are not ours."""
    for name in ("components", "pipelines"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    return tmp_path


def run(folder, *words, python_path=PROJECT):
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(python_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_the_command_line_and_names_itself_so(tmp_path):
    ran = run(tmp_path, "-m", "estimator_pipelines", "runs", "--help")
    assert "Usage: estimator-pipelines runs" in ran.stdout


def test_it_runs_beside_packages_of_our_names(folder):
    ran = run(folder, "-m", "estimator_pipelines", "runs", "--root", "none")
    assert (ran.returncode, "There is no folder" in ran.stderr) == (2, True), ran.stderr


def test_it_runs_where_the_path_names_packages_of_our_names_first(folder):
    path = os.pathsep.join([str(folder), str(PROJECT)])
    ran = run("/", "-m", "estimator_pipelines", "runs", "--root", "none", python_path=path)
    assert (ran.returncode, "There is no folder" in ran.stderr) == (2, True), ran.stderr


def test_the_module_form_runs_beside_a_package_components(folder):
    (folder / "pipelines" / "__init__.py").unlink()
    ran = run(folder, "-m", "pipelines", "runs", "--root", "none")
    assert (ran.returncode, "There is no folder" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize("start", ["-m pipelines", "-m estimator_pipelines"])
def test_only_the_command_of_one_word_offers_completion(tmp_path, start):
    offered = "--install-completion" in run(tmp_path, *start.split(), "--help").stdout
    assert offered == (start == "-m estimator_pipelines")


@pytest.mark.more
def test_bash_completes_commands_and_options(tmp_path):
    command = tmp_path / "bin" / "estimator-pipelines"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m estimator_pipelines "$@"\n')
    command.chmod(0o755)
    program = """
estimator-pipelines --install-completion
source .bashrc
for line in "estimator-pipelines roll" "estimator-pipelines rollback --t"; do
  COMP_WORDS=($line) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _estimator_pipelines_completion estimator-pipelines
  echo "completed: ${COMPREPLY[@]}"
done
"""
    ran = subprocess.run(
        ["bash", "-c", program],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    completed = [line for line in ran.stdout.splitlines() if line.startswith("completed")]
    assert completed == ["completed: rollback", "completed: --to"], (ran.stdout, ran.stderr)
