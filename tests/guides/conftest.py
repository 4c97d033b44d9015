"""Runs whole programs, written as for tf.estimator, in the two ways that make its names ours."""

import logging
import pathlib
import tempfile

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs"


@pytest.fixture(params=["import changed", "installed"])
def run_program(request, uninstalled, monkeypatch, tmp_path, caplog):
    """Returns a function that runs a program in the test's directory and returns its names.

    It runs with the one import changed by which a user gets at our names, and as it is after
    `estimator_core.install()`.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    caplog.set_level(logging.INFO)

    def run(name):
        source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
        if request.param == "installed":
            source = "import estimator_core; estimator_core.install(); " + source
        else:
            for old in ("tf.keras.estimator", "tf.estimator"):
                source = source.replace(old, "tf_estimator")
            source = "import estimator_core as tf_estimator; " + source
        names = {"__name__": "__main__"}
        exec(compile(source, PROGRAMS / f"{name}.py", "exec"), names)
        return names

    return run
