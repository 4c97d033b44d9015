"""A scheduler with small runs that is killed at one of the things that it writes or starts.

    python crashing_scheduler.py ROOT NUMBER HOW

It starts due runs, and ends. After the NUMBER-th moment (from 1; 0: none) it is killed by SIGKILL: `alone`,
or `both`, together with its run.
"""

import dataclasses
import json
import os
import signal
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from pipelines import atomic_files as files
from pipelines.root import Root
from pipelines.root.records import RunRecords
from pipelines.scheduling import receivers, run_process, scheduler, store
from pipelines.scheduling.clock import Stop
from tests.pipelines.scheduling.conftest import FakeClock

NOW = datetime(2026, 1, 31, 10, 2, 10, tzinfo=timezone.utc)
"""Two ticks are due of a schedule that begins at 10:00, each minute; the first one is late."""


class RealWaits(FakeClock):
    """A clock whose time passes only while somebody waits, and then a little in truth.

    A run that a killed scheduler has left behind goes on from then.
    """

    def __init__(self, start, release):
        super().__init__(start)
        self._release = release

    def sleep(self, secs):
        self._release.touch()
        time.sleep(0.05)
        super().sleep(secs if secs > 10 else 0.05)  # a run is waited for: nothing becomes late by it


class Killer:
    def __init__(self, number, how):
        self.number, self.how, self.names, self.process = number, how, [], None

    def around(self, action, name):
        def killing(*arguments, **named):
            self.names.append(name)
            # A run that is left behind is still alive when the next scheduler looks.
            waits = {0: "before", 1: "inside"}.get(self.number - len(self.names), "")
            if name == "start" and self.how == "alone":
                os.environ["SMALL_RUN_WAITS"] = waits
            result = action(*arguments, **named)
            if isinstance(result, run_process.RunProcess):
                self.process = result
            if len(self.names) == self.number:
                self.kill(name)
            return result

        return killing

    def kill(self, name):
        print(f"killed after {name}", flush=True)
        if self.how == "both" and self.process is not None:
            self.process.kill()
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    root, number, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    killer = Killer(number, how)
    for module in (receivers, store):
        module.write_json = killer.around(files.write_json, "write")
    RunRecords.write = killer.around(RunRecords.write, "write")
    stop = Stop()
    clock = RealWaits(NOW, root.parent / "release")

    def start(launch):
        words = launch.command
        tick = words[words.index("--scheduled-by") + 1]
        here = Path(__file__).with_name("small_run.py")
        resume = words[words.index(tick) + 1 :]  # ("--resume",), or nothing
        command = (sys.executable, str(here), str(root), tick, *resume)
        return run_process.RunProcess(dataclasses.replace(launch, command=command))

    def tell(config, content):
        if content["event"] in config.on:
            with (root.parent / "told.jsonl").open("a") as stream:
                stream.write(json.dumps(content) + "\n")
        return ""

    made = scheduler.Scheduler(
        Root(root), clock, stop, start=killer.around(start, "start"), tell=killer.around(tell, "tell")
    )
    done = made.run_due()
    print(f"{len(done)} ticks: {' '.join(killer.names)}", flush=True)


if __name__ == "__main__":
    main()
