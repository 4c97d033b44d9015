"""Runs of a schedule as forks of a process that has done the imports, to be killed on the way."""

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from pipelines.root import Root
from pipelines.scheduling.run_process import Launch

_COMPONENTS_BEFORE_KILL = 4


class ForkedRun:
    """`python -m pipelines run` in a fork of this process."""

    def __init__(self, launch: Launch, kill: str | None = None):
        for file in (launch.stdout, launch.stderr):
            file.parent.mkdir(parents=True, exist_ok=True)
        self._launch, self._kill = launch, kill
        sys.stdout.flush()  # otherwise the run would print the rest of the buffer, too
        self.pid = os.fork()
        if not self.pid:
            _be_the_run(launch)

    def wait(self, secs: float) -> int | None:
        """Waits for the end of the run."""
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if self._kill is not None and self._has_got_far():
                self._do_kill()
            time.sleep(0.1)
        return None

    def stop(self) -> None:
        """Asks the run to end."""
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kills the run."""
        os.kill(self.pid, signal.SIGKILL)

    def _has_got_far(self) -> bool:
        words = self._launch.command
        root, tick = words[words.index("--root") + 1], words[words.index("--scheduled-by") + 1]
        newest = next(reversed(Root(Path(root)).records.read_all()), None)
        return (
            newest is not None
            and newest.scheduled_by == tick
            and newest.status == "running"
            and len(newest.components) >= _COMPONENTS_BEFORE_KILL
        )

    def _do_kill(self) -> None:
        what, self._kill = self._kill, None
        if what in ("run", "both"):
            os.killpg(self.pid, signal.SIGKILL)
        if what in ("scheduler", "both"):
            os.kill(os.getpid(), signal.SIGKILL)


def _be_the_run(launch: Launch) -> None:
    """Turns a fork into the process of a run."""
    code: object = 70  # if it does not reach its exit
    try:
        os.setsid()
        os.chdir(launch.working_dir)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, file in ((1, launch.stdout), (2, launch.stderr)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv[1:] = launch.command[3:]
        import pipelines.__main__

        pipelines.__main__.main()
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()  # os._exit would drop it
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def import_all() -> None:
    """Imports the modules that a run needs, for all runs that are forked later."""
    import tensorflow_model_analysis  # noqa: F401
    import tensorflow_transform  # noqa: F401

    import components  # noqa: F401
