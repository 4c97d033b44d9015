"""The process of a scheduled run: `estimator-pipelines run`, with its output in files.

Files, not pipes: when the scheduler is killed, the run continues, and the next scheduler reads its output.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.root import Root
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import Tick


@dataclass(frozen=True)
class Launch:
    command: tuple[str, ...]
    working_dir: str
    stdout: Path
    stderr: Path


def run_command(schedule: Schedule, tick: Tick, root: Root, resume: bool) -> tuple[str, ...]:
    spans = (f"data.spans={tick.spans}",) if tick.spans is not None else ()
    settings = [word for setting in (*schedule.settings, *spans) for word in ("--set", setting)]
    command = [sys.executable, "-m", "estimator_pipelines", "run"]
    command += [] if schedule.config is None else ["--config", schedule.config]
    command += [*settings, "--root", str(root), "--runner", schedule.runner]
    return (*command, "--scheduled-by", tick.id, *(("--resume",) if resume else ()))


class RunProcess:
    """A run in a separate session: Ctrl-C only reaches the scheduler, which stops its run."""

    def __init__(self, launch: Launch):
        for file in (launch.stdout, launch.stderr):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)  # a pipe in its place would be waited for
        with launch.stdout.open("wb") as stdout, launch.stderr.open("wb") as stderr:
            self._process = subprocess.Popen(
                launch.command,
                cwd=launch.working_dir,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def wait(self, secs: float) -> int | None:
        """Returns the exit code; None if the run has not ended in time."""
        try:
            return self._process.wait(secs)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Asks it to end; it saves its state, to be resumed."""
        self._process.terminate()

    def kill(self) -> None:
        """Kills it with its child processes."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def last_line(stdout: Path) -> dict[str, Any] | None:
    """Returns the JSON object on the last line of a run; None if it did not get that far."""
    try:
        text = stdout.read_text(encoding="utf-8", errors="replace")
        line = json.loads(text.splitlines()[-1]) if text.endswith("\n") else None
    except (FileNotFoundError, ValueError):
        return None
    return line if isinstance(line, dict) and "status" in line else None


def output_tail(file: Path, num_chars: int = 500) -> str:
    """Returns the end of an output file, for a run that has written no last line."""
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 4 * num_chars))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return " | ".join(text.strip().splitlines()[-3:])[-num_chars:]
