"""Small programs in the style of kinds of projects do here what they did on tf.estimator 2.15."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.oracle.projects.run import ON_SHARDS
from tests.oracle.test_oracle import assert_same

FOLDER = pathlib.Path(__file__).parent / "projects"
with (pathlib.Path(__file__).parent / "projects.json").open() as file:
    EXPECTED = json.load(file)


@pytest.fixture(scope="module")
def runs():
    """Results of each program, from one process that imports TensorFlow for all of them."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.oracle.projects.run"],
        cwd=FOLDER.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout, run.stderr[-5000:]
    return json.loads(run.stdout)


def test_every_project_has_expectations():
    assert set(EXPECTED) == {path.stem for path in FOLDER.glob("*.py")} - {"run"}


@pytest.mark.slow
@pytest.mark.parametrize("project", EXPECTED)
def test_a_project_does_what_it_did_on_2_15(runs, project):
    assert "error" not in runs[project], runs[project]["error"]
    assert_same(runs[project], EXPECTED[project], project)


@pytest.mark.slow
@pytest.mark.parametrize("project", ON_SHARDS)
def test_shards_train_the_model_of_one_device(runs, project):
    seen = runs[f"{project} with use_tpu"]
    assert "error" not in seen, seen["error"]
    assert_same(seen["returned"], EXPECTED[project]["returned"], project)
