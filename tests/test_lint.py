"""The rules of `make lint` find what they are for."""

import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).parents[1]
RUFF = pathlib.Path(sysconfig.get_path("scripts"), "ruff")


def places(code):
    """Returns the rules that `code` breaks as a file of estimator_core, with their lines."""
    command = [
        *(RUFF, "check", "--no-cache", "--output-format=concise"),
        *("--config", ROOT / "scripts" / "lint" / "remote_files.toml"),
        *("--stdin-filename", ROOT / "estimator_core" / "estimator.py", "-"),
    ]
    process = subprocess.run(command, input=code, capture_output=True, text=True, cwd=ROOT)
    assert process.returncode in (0, 1), process.stderr
    return process.stdout


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ('open("a")', "PTH123"),
        ('import os\nos.stat("a")', "os.stat"),
        ('from os import path\npath.exists("a")', "os.path.exists"),
        ("from os import rename", "os.rename"),
        ("import shutil", "shutil"),
        ("from pathlib import Path", "pathlib"),
        ('import tensorflow as tf\ntf.train.load_checkpoint("a")', "tensorflow.train.load_checkpoint"),
    ],
)
def test_what_knows_local_files_only_is_banned(code, rule):
    assert rule in places(code)


def test_joining_paths_and_the_files_of_tensorflow_are_allowed():
    code = 'import os\nimport tensorflow as tf\ntf.io.gfile.exists(os.path.join("a", "b"))'
    assert "All checks passed" in places(code)


def _budget(root, lines, phrases):
    """Runs budget.py on a package of four lines with one of the phrases in ten words."""
    (root / "scripts" / "lint").mkdir(parents=True)
    for name in ("budget.py", "phrases.toml"):
        shutil.copy(ROOT / "scripts" / "lint" / name, root / "scripts" / "lint")
    (root / "package").mkdir()
    (root / "package" / "module.py").write_text(
        '"""Reads the files beside it."""\n\n# A comment of five words.\nSIZE = 2\n'
    )
    (root / "pyproject.toml").write_text(
        f"[tool.budget]\nlines.package = {lines}\nphrases.package = {phrases}\n"
    )
    command = [sys.executable, root / "scripts" / "lint" / "budget.py"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_package_within_its_budget_passes(tmp_path):
    process = _budget(tmp_path, 4, 90.91)  # 1 of the 11 words, the # among them
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines()[1].split() == ["package", "4", "4", "90.91", "90.91"]


@pytest.mark.parametrize(
    ("lines", "phrases", "message"),
    [(3, 99, "package has 4 lines of Python; the limit is 3"), (4, 90, "the limit is 90.00")],
)
def test_a_package_above_its_budget_fails(tmp_path, lines, phrases, message):
    process = _budget(tmp_path, lines, phrases)
    assert process.returncode == 1
    assert message in process.stderr
