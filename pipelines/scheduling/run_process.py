"""The process of a scheduled run: `estimator-pipelines run`, with its output in files.

Files, not pipes: when the scheduler is killed, the run continues, and the next scheduler reads its output.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pipelines.root import Root
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import Tick

Command = Callable[[Schedule, Tick, Root, bool], Sequence[str]]
"""Function that returns the command of a run, from schedule, tick, root, and True to resume."""


@dataclass(frozen=True)
class Launch:
    """Start parameters of a run.

    Attributes:
      command: Program and arguments.
      working_dir: Working directory.
      stdout: File for its standard output.
      stderr: File for its standard error.
    """

    command: tuple[str, ...]
    working_dir: str
    stdout: Path
    stderr: Path


class Process(Protocol):
    """A run that was started."""

    pid: int

    def wait(self, secs: float) -> int | None:
        """Waits for its end, and returns its exit code; None if it has not ended."""
        ...

    def stop(self) -> None:
        """Asks it to end; it saves its state, to be resumed."""
        ...

    def kill(self) -> None:
        """Kills it with its child processes."""
        ...


def run_command(schedule: Schedule, tick: Tick, root: Root, resume: bool) -> tuple[str, ...]:
    """Returns the command of a scheduled run."""
    spans = (f"data.spans={tick.spans}",) if tick.spans is not None else ()
    settings = [word for setting in (*schedule.settings, *spans) for word in ("--set", setting)]
    command = [sys.executable, "-m", "estimator_pipelines", "run"]
    command += [] if schedule.config is None else ["--config", schedule.config]
    command += [*settings, "--root", str(root), "--runner", schedule.runner]
    return (*command, "--scheduled-by", tick.id, *(("--resume",) if resume else ()))


def start_process(launch: Launch) -> "RunProcess":
    """Starts a run."""
    for file in (launch.stdout, launch.stderr):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)  # a pipe in its place would be waited for
    with launch.stdout.open("wb") as stdout, launch.stderr.open("wb") as stderr:
        return RunProcess(
            subprocess.Popen(
                launch.command,
                cwd=launch.working_dir,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C reaches the scheduler alone, which stops its run
            )
        )


class RunProcess:
    """A run in a session of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]"):
        self._process = process
        self.pid = process.pid

    def wait(self, secs: float) -> int | None:
        """Waits for its end, and returns its exit code; None if it has not ended."""
        try:
            return self._process.wait(secs)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Asks it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """Kills all processes of its session."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def last_line(stdout: Path) -> dict[str, Any] | None:
    """Returns the JSON object on the last line of a run; None if it did not get that far."""
    try:
        text = stdout.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    lines = text.splitlines()
    if not lines or not text.endswith("\n"):
        return None
    try:
        line = json.loads(lines[-1])
    except ValueError:
        return None
    return line if isinstance(line, dict) and "status" in line else None


def end_of(file: Path, num_chars: int = 500) -> str:
    """Returns the end of an output file, for a run that has written no last line."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 4 * num_chars))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return " | ".join(text.strip().splitlines()[-3:])[-num_chars:]
