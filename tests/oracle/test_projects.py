"""Small programs in the style of kinds of projects do here what they did on tf.estimator 2.15."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.circles import in_circles
from tests.oracle.projects.run import KERAS_2, ON_SHARDS
from tests.oracle.test_oracle import assert_same

FOLDER = pathlib.Path(__file__).parent / "projects"
with (pathlib.Path(__file__).parent / "projects.json").open() as file:
    EXPECTED = json.load(file)

# `make test-more` runs these.
FIRST = ("deepfm", "text_cnn")


@functools.cache
def runs(projects):
    """Returns what each program shows, from one process that imports TensorFlow for all of them."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.oracle.projects.run", *projects],
        cwd=FOLDER.parents[2],
        env={name: value for name, value in os.environ.items() if name != "TF_USE_LEGACY_KERAS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout, run.stderr[-5000:]
    return json.loads(run.stdout)


def seen_of(project, shown=None):
    if project in KERAS_2:
        pytest.importorskip("tf_keras")
    projects = FIRST if project in FIRST else tuple(name for name in EXPECTED if name not in FIRST)
    seen = runs(projects)[shown or project]
    assert "error" not in seen, seen["error"]
    return seen


def test_every_project_has_expectations():
    assert set(EXPECTED) == {path.stem for path in FOLDER.glob("*.py")} - {"run"}


@pytest.mark.more
@pytest.mark.parametrize("project", in_circles(EXPECTED, slow=set(EXPECTED) - {*FIRST}))
def test_a_project_does_what_it_did_on_2_15(project):
    assert_same(seen_of(project), EXPECTED[project], project)


@pytest.mark.slow
@pytest.mark.parametrize("project", ON_SHARDS)
def test_shards_train_the_model_of_one_device(project):
    seen = seen_of(project, f"{project} with use_tpu")
    assert_same(seen["returned"], EXPECTED[project]["returned"], project)
