"""Scheduled runs over growing spans, with kills: is any lost, is any done twice, is each push gated?

    python -m benchmarks.campaigns.scheduled_runs [--ticks 20] [--work FOLDER] [--kills TICK=WHAT ...]

Real pipeline runs of small data. A minute of the schedule's clock passes whenever nothing is due; each brings
a span. The runs are forked off the scheduler, which has done the imports. These are killed by SIGKILL:

- the run of one tick (like by the kernel, for memory): the scheduler resumes it;
- in another tick the scheduler and its run (like by a power cut): the next scheduler resumes the run;
- in a third one the scheduler alone: the next one waits for the run that is still running.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from benchmarks.campaigns.forked_run import ForkedRun, import_all
from benchmarks.campaigns.retraining_spans import rows_of_span, write_rows
from benchmarks.tables import format_table
from pipelines.atomic_files import read_json, write_json
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.clock import Stop
from pipelines.scheduling.history import ENDED, History, num_starts
from pipelines.scheduling.run_process import Launch
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.scheduler import Scheduler
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import iso, time_of_key

# Of today: runs that say they began more than a day after the scheduler's clock would be ignored.
START = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
NAME = "trips"
ROWS = 400
KILLS = {4: "run", 8: "both", 12: "scheduler"}
_A_MINUTE = 60.0

CONFIG = """\
name = "trips"
[data]
path = "spans/span-{SPAN}.csv"
label = "tipped"
exclude = ["passengers"]
[trainer]
model = "linear"
train_steps = 40
early_stopping = false
[evaluator]
slices = [[]]
[pusher]
keep = 3
[notify]
command = "tee -a told.jsonl"
on = ["failed", "not_blessed", "drifted", "missed", "unchanged", "pushed"]
"""


class InjectedClock:
    """A clock that advances when nothing is due, and keeps its time if the scheduler is killed."""

    def __init__(self, folder: Path):
        self._folder = folder
        with contextlib.suppress(FileNotFoundError):
            self.time = datetime.fromisoformat(read_json(folder / "clock.json")["time"])
            return
        self.time = START

    def now(self) -> datetime:
        """Returns the time."""
        return self.time

    def monotonic(self) -> float:
        """Returns the time in seconds."""
        return (self.time - START).total_seconds()

    def sleep(self, secs: float) -> None:
        """Lets a minute pass, or really sleeps while the scheduler waits for a run."""
        if secs < _A_MINUTE:
            time.sleep(0.2)
        else:
            self.set(self.time + timedelta(seconds=_A_MINUTE))

    def set(self, moment: datetime) -> None:
        """Sets the time, and writes the span of its minute."""
        self.time = moment
        number = int((moment - START).total_seconds() // 60)
        if number:
            write_span(self._folder, number)
        write_json(self._folder / "clock.json", {"time": iso(moment)})


def write_span(folder: Path, number: int) -> None:
    """Writes the data of a span, if they do not exist."""
    file = folder / "spans" / f"span-{number}.csv"
    if file.exists():
        return
    write_rows(file, rows_of_span(number)[:ROWS])


def make_schedule(folder: Path, **changes: object) -> Schedule:
    """Returns a schedule of the folder's data, each minute."""
    fields = {
        "name": NAME,
        "config": str(folder / "trips.toml"),
        "working_dir": str(folder),
        "every_secs": 60,
        "since": START,
        "created": START,
        **changes,
    }
    return Schedule.model_validate(fields)


def run_scheduler(folder: Path, ticks: int, kills: dict[int, str]) -> None:
    """Runs the schedule until all of its ticks are done, unless it is killed before."""
    import_all()
    os.chdir(folder)
    root, clock = Root(folder / "root"), InjectedClock(folder)

    def start(launch: Launch) -> ForkedRun:
        number = _minute(launch.command[launch.command.index("--scheduled-by") + 1])
        return ForkedRun(launch, None if "--resume" in launch.command else kills.get(number))

    scheduler = Scheduler(root, clock, Stop(), start=start)
    while True:
        for run in scheduler.run_due():
            print(f"  {run.scheduled_by} {run.status}", flush=True)
        if len(History.read(root).runs_by_tick(NAME)) >= ticks:
            return
        clock.sleep(60)


def _minute(tick: str | None) -> int:
    """Returns the minute of the clock at which a tick is due; it brings the span of the same number."""
    due = time_of_key(str(tick).partition("/")[2])
    return round((due - START).total_seconds() / 60) if due else 0


def show_ticks(folder: Path, ticks: int, kills: dict[int, str]) -> None:
    """Runs the schedule with its kills, and prints the outcome of each tick."""
    ScheduleStore(Root(folder / "root")).write(make_schedule(folder))
    schedulers = 0
    while True:
        words = [sys.executable, "-m", "benchmarks.campaigns.scheduled_runs", "--scheduler", str(folder)]
        print("a scheduler begins", flush=True)
        given = [f"{number}={what}" for number, what in kills.items()]
        code = subprocess.run([*words, "--ticks", str(ticks), "--kills", *given]).returncode
        schedulers += 1
        if code != -signal.SIGKILL:
            break
        print("  the scheduler was killed", flush=True)
    if code:
        sys.exit(f"the scheduler ended with exit code {code}")
    by_tick = History.read(Root(folder / "root")).runs_by_tick(NAME)
    records = Root(folder / "root").records.read_all()
    rows = [
        (
            str(record.scheduled_by),
            str(record.spans[0]["span"]) if record.spans else "",
            kills.get(_minute(record.scheduled_by), ""),
            str(num_starts([record])),
            record.status,
            record.version or "",
            str(len(record.checks)),
            f"{record.metrics.get('auc') or 0:.4f}",
            record.run_id,
        )
        for record in records
    ]
    header = ("tick", "span", "killed", "starts", "status", "version", "checks", "AUC", "run")
    print(format_table(header, rows))
    pushed = [record for record in records if record.status == "pushed"]
    spans = [record.spans[0]["span"] for record in records if record.spans]
    print(
        f"ticks done: {sum(runs[-1].status in ENDED for runs in by_tick.values())} of {ticks}, in "
        f"{schedulers} schedulers"
    )
    print(
        f"runs: {len(records)}, of different ticks: {len(by_tick)}; lost: {ticks - len(by_tick)}; "
        f"doubled: {len(records) - len(by_tick)}"
    )
    print(f"spans read: {spans[0]}..{spans[-1]}, each once: {spans == list(range(1, ticks + 1))}")
    print(f"versions pushed: {len(pushed)}, gated: {sum(map(_is_gated, pushed))}")
    ids = [content["id"] for content in read_told(folder)]
    print(f"notifications: {len(ids)}, twice: {len(ids) - len(set(ids))}\n")


def read_told(folder: Path) -> list[dict[str, Any]]:
    """Returns the notifications so far."""
    lines = (folder / "told.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _is_gated(record: RunRecord) -> bool:
    """Returns True if a run that pushed was evaluated first, and passed every check."""
    names = [part.name for part in record.components]
    return (
        "Evaluator" in names
        and names.index("Evaluator") < names.index("Pusher")
        and bool(record.checks)
        and all(check["passed"] for check in record.checks)
    )


def main() -> None:
    """Runs the campaign, or one of its schedulers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--work", type=Path, help="keeps data and roots there")
    parser.add_argument("--scheduler", type=Path, help=argparse.SUPPRESS)
    given = [f"{number}={what}" for number, what in KILLS.items()]
    parser.add_argument("--kills", nargs="*", default=given, help="TICK=run, both or scheduler")
    arguments = parser.parse_args()
    kills = {int(text.partition("=")[0]): text.partition("=")[2] for text in arguments.kills}
    if arguments.scheduler:
        run_scheduler(arguments.scheduler, arguments.ticks, kills)
        return
    with contextlib.ExitStack() as stack:
        work = arguments.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        folder = work.resolve()
        (folder / "trips.toml").write_text(CONFIG, encoding="utf-8")
        begun = time.monotonic()
        show_ticks(folder, arguments.ticks, kills)
        print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
