"""A process that ends at once leaves no temporary files."""

import os
import pathlib
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).parents[3]

# AutoGraph writes the source of the function into a temporary file.
PROGRAM = """
import sys
import tensorflow as tf
from pipelines.terminal.ending import end_process, temporary_folder

@tf.function
def sign(number):
    if number > 0:
        return 1
    return -1

folder = temporary_folder("rows-")
(folder / "rows.csv").write_text("a\\n")
print(int(sign(tf.constant(3))), folder.exists(), end="")
(end_process if sys.argv[1] == "at once" else sys.exit)(3)
"""


@pytest.fixture
def run_to_the_end(tmp_path):
    """Returns a function that runs Python, which has to leave no temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def run(*arguments):
        environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(PROJECT)}
        ended = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
        assert list(temporary.iterdir()) == []
        return ended

    return run


@pytest.mark.more
@pytest.mark.parametrize("how", ["at once", "as usual"])
def test_a_process_leaves_no_temporary_files(run_to_the_end, tmp_path, how):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = run_to_the_end(program, how)
    assert (ended.returncode, ended.stdout) == (3, "1 True"), ended.stderr


@pytest.mark.more
def test_a_run_leaves_no_copy_of_the_users_data(run_to_the_end, tmp_path):
    data = tmp_path / "rows.csv"
    data.write_text("a,y\n" + "1,yes\n2,no\n" * 50, encoding="utf-16")
    words = f"-m pipelines run --data {data} --label z --root {tmp_path}/root"
    ended = run_to_the_end(*words.split())
    assert ended.returncode == 2
    assert "'z'" in ended.stderr
