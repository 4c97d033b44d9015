"""Runs tests in forks of a process that has imported the libraries already."""

import ctypes
import gc
import importlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from typing import Any

import pytest
from watch import Watch, rows

# Without Beam, TFX and KFP: `components` makes changes to them when they are imported.
LIBRARIES = (
    *("tensorflow", "tf_keras", "optuna", "lightgbm", "sklearn.linear_model", "matplotlib.pyplot"),
    *("pydantic", "jinja2", "uvicorn"),
)
TEST_SECS = 60  # a test that takes longer has found the mutant
PR_SET_CHILD_SUBREAPER = 36


def import_libraries() -> None:
    """Imports what forks share, but no module of the project: a mutant may be in what an import runs."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    for name in LIBRARIES:
        module = importlib.import_module(name)
        if name == "tensorflow":
            module.keras.Model  # noqa: B018  # as in tests/conftest.py: Transform would ask for Keras 2
    gc.freeze()
    # Orphans of the tests become children of this process, which can end them.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


class Forks:
    """Runs tests of a copy of the sources."""

    def __init__(self, tree: pathlib.Path):
        self._tree = tree

    def run(
        self,
        paths: list[str],
        mutant: int | None = None,
        tests: list[str] | None = None,
        markers: str = "",
        limit_secs: int = 2 * TEST_SECS,
    ) -> list[dict[str, Any]]:
        """Returns a row for each test that has begun, as `Watch` writes it.

        Args:
          paths: Files or folders of tests.
          mutant: Number of the active mutant; None: none is active, and what the tests reach is recorded.
          tests: Tests to run, in this order, up to the first that fails; None: all with these markers.
          markers: Expression as for pytest's -m.
          limit_secs: Seconds after which the process is killed.
        """
        folder = pathlib.Path(tempfile.mkdtemp(prefix="mutants-"))
        child = os.fork()
        if not child:
            code = pytest.ExitCode.INTERNAL_ERROR
            try:
                code = self._run_in_child(folder, paths, mutant, tests, markers)
            finally:
                os._exit(code)
        deadline = time.monotonic() + limit_secs
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.05)
        _end_descendants()
        written = rows(folder / "log")
        outcomes = [row for row in written if "test" in row]
        fine = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if written and "begins" in written[-1]:
            outcome = "timed out" if ended == (0, 0) else "crashed"
            outcomes.append({"test": written[-1]["begins"], "outcome": outcome})
        elif os.waitstatus_to_exitcode(ended[1]) not in fine and not any(map(has_failed, outcomes)):
            # A conftest.py could not be imported, for example.
            outcomes.append({"test": paths[0], "outcome": "failed"})
        shutil.rmtree(folder, ignore_errors=True)
        return outcomes

    def _run_in_child(
        self,
        folder: pathlib.Path,
        paths: list[str],
        mutant: int | None,
        tests: list[str] | None,
        markers: str,
    ) -> int:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (1, 2):
            os.dup2(os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        os.chdir(self._tree)
        sys.path[0] = os.environ["PYTHONPATH"] = str(self._tree)
        if mutant is None:
            os.environ["REACHED"] = str(folder / "reached")
        else:
            os.environ["MUTANT"] = str(mutant)
        options = ["-q", "-p", "no:cacheprovider", "-m", markers, f"--basetemp={folder / 'tests'}"]
        if tests:
            options += ["--exitfirst", f"--timeout={TEST_SECS}"]
        code = pytest.main([*options, *paths], plugins=[Watch(folder / "log", folder / "reached", tests)])
        sys.stdout.flush()
        return code


def has_failed(row: dict[str, Any]) -> bool:
    """Returns True for a test that failed, crashed or timed out."""
    return row["outcome"] not in ("passed", "skipped")


def _end_descendants() -> None:
    while children := pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
