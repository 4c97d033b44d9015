"""Scheduled runs over growing spans, with kills: is any lost, is any done twice, is each push gated?

    python -m benchmarks.campaigns.scheduled_runs [--ticks 20] [--work FOLDER]
        [--parts ticks real backfill sleep]

Real pipeline runs of small data. A minute of the schedule's clock passes whenever nothing is due; each brings
a span. The runs are forked off the scheduler, which has done the imports. These are killed by SIGKILL:

- the run of one tick (like by the kernel, for memory): the scheduler resumes it;
- in another tick the scheduler and its run (like by a power cut): the next scheduler resumes the run;
- in a third one the scheduler alone: the next one waits for the run that is still running.

Three ticks use the real clock: `schedule run` unchanged, with a span that arrives each minute. Five
spans are backfilled; their third run is killed. Then a machine sleeps through four ticks, with each
setting of `missed`.
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
from pipelines.scheduling.backfill import plan_backfill
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
WHEN_REAL = ("--every", "1m", "--missed", "catch-up")
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
    """A clock that advances when nothing is due, and keeps its time if the scheduler is killed.

    Args:
        folder: Folder that keeps the time, and gets a span each minute.
    """

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
        words = [
            sys.executable,
            "-m",
            "benchmarks.campaigns.scheduled_runs",
            "--scheduler",
            str(folder),
        ]
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


def show_real_clock(folder: Path, ticks: int = 3) -> None:
    """Runs some ticks of `schedule run` with the real clock, and prints their outcomes."""
    root = folder / "real_root"
    folder.mkdir(exist_ok=True)
    (folder / "trips.toml").write_text(CONFIG, encoding="utf-8")
    _schedule(folder, "create", "--config", folder / "trips.toml", *WHEN_REAL).wait()
    scheduler = _schedule(folder, "run")
    begun, disabled = time.monotonic(), False
    records: list[RunRecord] = []
    try:
        while not disabled or records[-1].status not in ENDED:
            if scheduler.poll() is not None:
                sys.exit(f"the scheduler ended with exit code {scheduler.returncode}")
            write_span(folder, int((time.monotonic() - begun) / _A_MINUTE) + 1)
            records = Root(root).records.read_all()
            if not disabled and len(records) == ticks:  # while the last one is run
                disabled = _schedule(folder, "disable", NAME).wait() == 0
            time.sleep(0.5)
    finally:
        scheduler.terminate()
        scheduler.wait()
    rows = []
    for record in records:
        due = time_of_key(str(record.scheduled_by).partition("/")[2])
        begin, end = map(datetime.fromisoformat, (record.started, record.finished or ""))
        rows.append(
            (
                str(record.scheduled_by),
                f"{(begin - (due or begin)).total_seconds():.0f} s",
                f"{(end - begin).total_seconds():.0f} s",
                record.status,
                record.version or "",
                str(record.spans[0]["span"]),
                "yes" if _is_gated(record) else "no",
            )
        )
    header = ("tick", "begun after", "took", "status", "version", "span read", "passed the gate")
    print(f"The real clock, one a minute, catch-up\n{format_table(header, rows)}")
    print(f"runs in the root: {len(records)}; exit code on SIGTERM: {scheduler.returncode}\n")


def _schedule(folder: Path, *words: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "pipelines", "schedule", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        [*command, "--root", str(folder / "real_root")], cwd=folder, env=environment
    )


def show_sleep(folder: Path, first_span: int) -> None:
    """Lets a machine sleep through four ticks, with each setting, and prints the runs afterwards."""
    rows = []
    for number, missed in enumerate(("skip", "latest", "catch-up")):
        clock = InjectedClock(folder)
        begin = START + timedelta(minutes=first_span + 10 * number)
        clock.set(begin)
        store = ScheduleStore(Root(folder / "root"))
        for name in store.names():
            store.delete(name)
        name = f"sleep-{missed}"
        store.write(make_schedule(folder, name=name, since=begin, created=begin, missed=missed))
        (folder / "told.jsonl").write_text("")
        # Four ticks pass, and the last one is 40 of its 60 seconds ago, so it is late, too.
        clock.set(begin + timedelta(minutes=4, seconds=40))
        scheduler = Scheduler(Root(folder / "root"), clock, Stop(), start=ForkedRun)
        done = scheduler.run_due()
        told = read_told(folder)
        missed_told = [
            content["missed"]["count"] for content in told if content["event"] == "missed"
        ]
        clock.set(begin + timedelta(minutes=5))
        after = scheduler.run_due()
        rows.append(
            (
                missed,
                str(len(done)),
                ", ".join(run.status for run in done),
                ", ".join(map(str, missed_told)),
                ", ".join(run.status for run in after),
            )
        )
    header = ("missed", "runs", "status", "notified as missed", "the next tick")
    print(f"A machine that slept through four ticks\n{format_table(header, rows)}\n", flush=True)


def show_backfill(folder: Path) -> None:
    """Backfills spans 3 to 7, kills the third run, and prints the outcomes."""
    root = Root(folder / "backfill_root")
    for number in range(1, 9):
        write_span(folder, number)
    schedule = make_schedule(folder)
    ScheduleStore(root).write(schedule)
    clock = InjectedClock(folder)
    starts: list[Launch] = []

    def start(launch: Launch) -> ForkedRun:
        starts.append(launch)
        return ForkedRun(launch, "run" if len(starts) == 3 else None)

    scheduler = Scheduler(root, clock, Stop(), start=start)
    backfill = plan_backfill(schedule, root, "3", "7", clock.now(), False)
    list(backfill.run(scheduler, keep_going=False))
    records = root.records.read_all()
    rows = [
        (
            str(record.spans[0]["span"]),
            str(record.attempt),
            record.status,
            record.version or "",
            "yes" if _is_gated(record) else "no",
        )
        for record in records
    ]
    header = ("span read", "starts", "status", "version", "passed the gate")
    print(f"Backfill of spans 3 to 7\n{format_table(header, rows)}")
    again = list(plan_backfill(schedule, root, "3", "7", clock.now(), False).run(scheduler, False))
    print(f"the same command again: {len(again)} runs; runs: {len(records)}\n", flush=True)


def main() -> None:
    """Runs all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--work", type=Path, help="keeps data and roots there")
    parts = ("ticks", "real", "backfill", "sleep")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
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
        if "ticks" in arguments.parts:
            begun = time.monotonic()
            show_ticks(folder, arguments.ticks, kills)
            print(f"{time.monotonic() - begun:.0f} s\n", flush=True)
        if "real" in arguments.parts:
            show_real_clock(folder / "real")  # no other part has written later spans there
        if {"backfill", "sleep"} & set(arguments.parts):
            import_all()
            os.chdir(folder)
        if "backfill" in arguments.parts:
            show_backfill(folder)
        if "sleep" in arguments.parts:
            show_sleep(folder, arguments.ticks + 10)


if __name__ == "__main__":
    main()
