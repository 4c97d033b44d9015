"""Runs a container as a process of this machine, isolated from the caller's environment."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pipelines

_GRACE_SECS = 20.0  # for a training to save


@dataclass(frozen=True)
class Container:
    image: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]  # Environment variables of the specification
    folder: Path  # Folder of all its files: working folder, temporary files, local copies
    mounts: tuple[Path, ...] = ()  # Paths of this machine that it sees under the same name


@dataclass(frozen=True)
class Process:
    """A process that starts a container."""

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()
    # Pattern of the lines that the engine adds to the log after a failure.
    added_lines: re.Pattern[str] | None = None


Engine = Callable[[Container], Process]
"""Function that returns the process that starts a container."""


def as_subprocess(container: Container) -> Process:
    """Returns a process of this machine's Python, in an empty folder and a separate environment.

    It can import this package and the modules that the calling command can import, as in the image.
    """
    home, work, temporary = (container.folder / name for name in ("home", "work", "tmp"))
    for folder in (home, work, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    sources = [str(Path(pipelines.__file__).parents[1]), os.getcwd()]
    sources += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.defpath)),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(sources)),
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TMPDIR": str(temporary),
        **container.environment,
    }
    return Process(container.arguments, environment, work)


class Processes:
    """Running processes, which can all be ended."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def run(self, process: Process, log: Path, timeout_secs: float | None = None) -> int:
        """Runs a process to its end, and returns its exit code."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            with self._lock:
                if self._closed.is_set():
                    raise InterruptedError("the run was stopped")
                started = subprocess.Popen(
                    process.arguments,
                    cwd=process.folder,
                    env=process.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # signals of the terminal reach only this program
                )
                self._running.add(started)
            try:
                return started.wait(timeout_secs)
            except subprocess.TimeoutExpired as error:
                _end(started)
                raise TimeoutError(f"it took longer than {timeout_secs:g} s") from error
            finally:
                with self._lock:
                    self._running.discard(started)

    def close(self) -> None:
        """Ends all processes, and lets no further ones start."""
        with self._lock:
            self._closed.set()
            running = list(self._running)
        _end(*running)


def _end(*processes: "subprocess.Popen[bytes]") -> None:
    """Ends processes and those that they have started; all have the same time for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        deadline = time.monotonic() + _GRACE_SECS
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
