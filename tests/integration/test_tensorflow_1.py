"""A program that calls disable_v2_behavior(), against its output on tf.estimator 2.15."""

import json
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.more

HERE = pathlib.Path(__file__).parent
PROGRAM = HERE / "tensorflow_1_program.py"


@pytest.fixture(scope="module")
def seen():
    """The output of the program here; the setting holds for its whole process."""
    run = subprocess.run(
        [sys.executable, PROGRAM], cwd=HERE.parents[1], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("part", json.loads(PROGRAM.with_suffix(".json").read_text()))
def test_the_same_as_in_tensorflow_1(seen, part):
    expected = json.loads(PROGRAM.with_suffix(".json").read_text())[part]
    assert set(seen[part]) == set(expected)
    for what, values in expected.items():
        assert seen[part][what] == pytest.approx(values, rel=1e-5, abs=1e-6), what
