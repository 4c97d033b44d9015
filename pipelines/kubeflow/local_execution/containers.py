"""How a container is run: as a process here, with nothing of the caller's surroundings."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pipelines

_GRACE_SECS = 20.0  # for a training to save


@dataclass(frozen=True)
class Container:
    """What is to run.

    Attributes:
      image: Of the container.
      arguments: Command and arguments.
      environment: Variables of the specification.
      folder: Everything of the container is below it: working folder, temporary files, local copies.
      mounts: Paths of this machine that it sees under the same name.
    """

    image: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    mounts: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Process:
    """What starts a container.

    Attributes:
      arguments: Of the process.
      environment: All of it.
      folder: Working folder.
      added_lines: Lines of the log that are not the container's: what starts it adds them at a failure.
    """

    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()
    added_lines: re.Pattern[str] | None = None


class Engine(Protocol):
    """Turns a container into a process; what runs it in an image is another one."""

    def __call__(self, container: Container) -> Process:
        """Returns what starts the container."""


def as_subprocess(container: Container) -> Process:
    """Returns a process of this machine's Python, in an empty folder and an environment of its own.

    It finds this package and the modules that the command itself finds, as the image would have them.
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
    """The processes that are running, so that all of them can be ended."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def run(self, process: Process, log: Path, timeout_secs: float | None = None) -> int:
        """Runs a process to its end, and returns its exit code.

        Args:
          process: What to run.
          log: Takes what it prints.
          timeout_secs: After which it is ended. Default: never.

        Raises:
          TimeoutError: It took longer.
          InterruptedError: All processes were ended.
        """
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
                    start_new_session=True,  # a signal of the terminal reaches this program alone
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

    def pause(self, secs: float) -> None:
        """Waits some seconds, or until all processes are ended."""
        self._closed.wait(secs)

    def close(self) -> None:
        """Ends all processes, and lets none begin any more."""
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
