"""Programs of TensorFlow 1's and 2's days run unchanged, and do the same as on tf.estimator 2.15."""

import json
import math
import os
import pathlib
import subprocess
import sys

import pytest

from tests.circles import in_circles

PROGRAMS = pathlib.Path(__file__).parent / "old_projects"
EXPECTED = {path.stem: path for path in sorted(PROGRAMS.glob("*.json"))}
KERAS_2 = {"text_cnn"}  # tf.compat.v1.layers
SLOW = {"bert_classifier", "census", "deepfm", "extra_signatures"}


def assert_same(seen, expected, where):
    """Checks that two values are the same, and floats in them nearly so."""
    if isinstance(expected, dict):
        assert set(seen) == set(expected), where
        for name, value in expected.items():
            assert_same(seen[name], value, f"{where}/{name}")
    elif isinstance(expected, list):
        assert len(seen) == len(expected), where
        for index, (one, other) in enumerate(zip(seen, expected, strict=True)):
            assert_same(one, other, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert isinstance(seen, float), where
        assert math.isclose(seen, expected, rel_tol=1e-5, abs_tol=1e-6), (where, seen, expected)
    else:
        assert seen == expected, where


def test_every_program_has_expectations():
    others = {"bert_optimization", "run"}
    assert set(EXPECTED) == {path.stem for path in PROGRAMS.glob("*.py")} - others


@pytest.mark.more
@pytest.mark.parametrize("program", in_circles(EXPECTED, slow=SLOW))
def test_an_old_program(program):
    """In a process of its own: install() and Keras 2 hold for all of it."""
    if program in KERAS_2:
        pytest.importorskip("tf_keras")
    root = PROGRAMS.parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "tests.integration.old_projects.run", program],
        env={
            **{name: value for name, value in os.environ.items() if name != "TF_USE_LEGACY_KERAS"},
            **({"TF_USE_LEGACY_KERAS": "1"} if program in KERAS_2 else {}),
        },
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    assert_same(json.loads(run.stdout), json.loads(EXPECTED[program].read_text()), program)


def test_a_difference_is_found():
    expected = {"a": [1.0, "x", 2]}
    assert_same({"a": [1.000005, "x", 2]}, expected, "same")
    for seen in ({"a": [1.0001, "x", 2]}, {"a": [1.0, "y", 2]}, {"a": [1.0, "x"]}, {"b": []}):
        with pytest.raises(AssertionError):
            assert_same(seen, expected, "other")
