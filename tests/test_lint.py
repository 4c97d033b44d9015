"""The rules of `make lint` find what they are for."""

import pathlib
import subprocess
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
        (
            'import tensorflow as tf\ntf.train.load_checkpoint("a")',
            "tensorflow.train.load_checkpoint",
        ),
    ],
)
def test_what_knows_local_files_only_is_banned(code, rule):
    assert rule in places(code)


def test_joining_paths_and_the_files_of_tensorflow_are_allowed():
    code = 'import os\nimport tensorflow as tf\ntf.io.gfile.exists(os.path.join("a", "b"))'
    assert "All checks passed" in places(code)
