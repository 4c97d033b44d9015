"""Starts the clean process that asks a model, and hands it the request."""

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

from tfx.types.artifact import Artifact

from components.serving_check import clean_process
from components.tfx.model_paths import serving_model_path

T = TypeVar("T")

MAX_SECONDS = 600
"""Time for all answers of a model, in seconds."""

_NOT_OF_CLEAN_PROCESS = ("PYTHON", "TF_CONFIG")

# Without a GPU, all of whose memory the parent process may hold.
_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}

_ready: list["ModelProcess"] = []


class ModelProcess:
    """A process with TensorFlow and NumPy alone, which loads a model and then waits for its request on stdin.

    It ends when this process ends or is killed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(_NOT_OF_CLEAN_PROCESS)
        }
        self._process = subprocess.Popen(
            [sys.executable, "-I", clean_process.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**environment, **_ENVIRONMENT},
        )
        self._send(path)

    def ask(self, request: dict[str, Any], meanwhile: Callable[[], T]) -> tuple[Any, T]:
        """Returns the answers, and the result of a function that runs at the same time."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("request", "answers")]
            with open(paths[0], "wb") as stream:
                pickle.dump(request, stream)
            self._send(*paths)
            try:
                result = meanwhile()
                _, stderr = self._process.communicate(timeout=MAX_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise TimeoutError(f"The exported model has not responded within {MAX_SECONDS} s.") from error
            finally:
                self.end()
            if self._process.returncode:
                raise RuntimeError(
                    f"The process that runs the model exited with code {self._process.returncode}: "
                    f"{stderr.decode('utf-8', 'replace')[-400:]}"
                )
            with open(paths[1], "rb") as stream:
                return pickle.load(stream), result

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _send(self, *lines: str) -> None:
        assert self._process.stdin is not None
        # A process that has ended says why by its code and its error.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._process.stdin.flush()


def prepare(model: Artifact) -> None:
    """Starts the process for the next ServingCheck of a model, so that the model is loaded in advance."""
    discard()
    with contextlib.suppress(FileNotFoundError, ValueError):
        _ready.append(ModelProcess(serving_model_path(model)))


def take(path: str, loads_now: bool = False) -> ModelProcess:
    """Returns the process that `prepare` has started for a model, or a new process."""
    if loads_now:
        discard()
    if _ready and _ready[0].path == path and not _ready[0].has_ended():
        return _ready.pop()
    return ModelProcess(path)


@atexit.register
def discard() -> None:
    """Ends the process that `prepare` has started, if nothing has taken it."""
    while _ready:
        _ready.pop().end()
