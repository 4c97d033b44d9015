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

from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.tick_runner import TickRunner

from benchmarks.campaigns.forked_run import ForkedRun, import_all
from benchmarks.campaigns.retraining_spans import rows_of_span, write_rows
from benchmarks.tables import format_table
from pipelines.atomic_files import read_json, write_json
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.backfill import plan_backfill
from pipelines.scheduling.clock import Stop
from pipelines.scheduling.run_process import Launch, run_command
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.scheduler import Scheduler
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import Tick, iso

START = datetime(2026, 1, 31, 10, 0, tzinfo=timezone.utc)
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
    root, clock, stop = folder / "root", InjectedClock(folder), Stop()
    ledger = Ledger(root / "schedules" / NAME, NAME)

    def start(launch: Launch) -> ForkedRun:
        tick = ledger.unfinished()
        number = round((tick.due_time - START).total_seconds() / 60) if tick else 0
        return ForkedRun(launch, kills.get(number) if tick and tick.starts == 1 else None)

    scheduler = Scheduler(Root(root), clock, stop, start=start)
    while len(ledger.keys()) < ticks or ledger.unfinished() or scheduler.outbox.pending():
        for tick in scheduler.run_due():
            print(f"  {tick.due[11:16]} {tick.status}, starts: {tick.starts}", flush=True)
        if len(ledger.keys()) < ticks or scheduler.outbox.pending():
            clock.sleep(60)


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
    root = folder / "root"
    done = list(Ledger(root / "schedules" / NAME, NAME).ticks())
    records = {record.run_id: record for record in Root(root).records.read_all()}
    print(_table(done, records, kills))
    runs = [tick.run_id for tick in done]
    pushed = [record for record in records.values() if record.status == "pushed"]
    gated = [one for one in pushed if _is_gated(one)]
    spans = [records[run].spans[0]["span"] for run in runs if run in records]
    print(
        f"ticks done: {sum(tick.state == 'done' for tick in done)} of {ticks}, in {schedulers} schedulers"
    )
    print(
        f"runs: {len(records)}, of different ticks: {len(set(runs))}; lost: {ticks - len(set(runs))}; "
        f"doubled: {len(records) - len(set(runs))}"
    )
    print(f"spans read: {spans[0]}..{spans[-1]}, each once: {spans == list(range(1, ticks + 1))}")
    print(f"versions pushed: {len(pushed)}, gated: {len(gated)}")
    told = read_told(folder)
    ids = [one["id"] for one in told]
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


def _table(done: list[Tick], records: dict[str, RunRecord], kills: dict[int, str]) -> str:
    rows = []
    for number, tick in enumerate(done, 1):
        record = records.get(tick.run_id or "")
        rows.append(
            (
                tick.due[11:16],
                str(record.spans[0]["span"]) if record and record.spans else "",
                kills.get(number, ""),
                str(tick.starts),
                str(tick.status),
                tick.version or "",
                str(len(record.checks)) if record else "",
                f"{record.metrics.get('auc') or 0:.4f}" if record else "",
                tick.run_id or "",
            )
        )
    header = ("due", "span", "killed", "starts", "status", "version", "checks", "AUC", "run")
    return format_table(header, rows)


def show_real_clock(folder: Path, ticks: int = 3) -> None:
    """Runs some ticks of `schedule run` with the real clock, and prints their outcomes."""
    root = folder / "real_root"
    folder.mkdir(exist_ok=True)
    (folder / "trips.toml").write_text(CONFIG, encoding="utf-8")
    ledger = Ledger(root / "schedules" / NAME, NAME)
    _schedule(folder, "create", "--config", folder / "trips.toml", *WHEN_REAL).wait()
    scheduler = _schedule(folder, "run")
    begun, disabled = time.monotonic(), False
    try:
        while not disabled or ledger.unfinished() is not None:
            if scheduler.poll() is not None:
                sys.exit(f"the scheduler ended with exit code {scheduler.returncode}")
            write_span(folder, int((time.monotonic() - begun) / _A_MINUTE) + 1)
            if not disabled and len(ledger.keys()) == ticks:  # while the last one is run
                disabled = _schedule(folder, "disable", NAME).wait() == 0
            time.sleep(0.5)
    finally:
        scheduler.terminate()
        scheduler.wait()
    records = {record.run_id: record for record in Root(root).records.read_all()}
    rows = []
    for tick in ledger.ticks():
        record = records[tick.run_id or ""]
        waited = datetime.fromisoformat(tick.started or "") - tick.due_time
        rows.append(
            (
                tick.due[11:19],
                f"{waited.total_seconds():.0f} s",
                f"{tick.duration_secs:.0f} s",
                str(tick.status),
                tick.version or "",
                str(record.spans[0]["span"]),
                "yes" if _is_gated(record) else "no",
            )
        )
    header = ("due", "begun after", "took", "status", "version", "span read", "passed the gate")
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
        scheduler = Scheduler(
            Root(folder / "root"), clock, Stop(), start=lambda launch: ForkedRun(launch)
        )
        done = scheduler.run_due()
        skipped = sum(one.count for one in store.ledger(name).ticks() if one.state == "skipped")
        told = read_told(folder)
        missed_told = [one["missed"]["count"] for one in told if one["event"] == "missed"]
        clock.set(begin + timedelta(minutes=5))
        after = scheduler.run_due()
        rows.append(
            (
                missed,
                str(len(done)),
                ", ".join(str(tick.status) for tick in done),
                str(skipped),
                ", ".join(map(str, missed_told)),
                ", ".join(str(tick.status) for tick in after),
            )
        )
    header = ("missed", "runs", "status", "skipped", "notified as missed", "the next tick")
    print(f"A machine that slept through four ticks\n{format_table(header, rows)}\n", flush=True)


def show_backfill(folder: Path) -> None:
    """Backfills spans 3 to 7, kills the third run, and prints the outcomes."""
    root = folder / "backfill_root"
    for number in range(1, 9):
        write_span(folder, number)
    schedule = make_schedule(folder)
    ScheduleStore(Root(root)).write(schedule)
    clock, stop = InjectedClock(folder), Stop()
    starts: list[int] = []

    def start(launch: Launch) -> ForkedRun:
        starts.append(len(starts) + 1)
        return ForkedRun(launch, "run" if len(starts) == 3 else None)

    scheduler = Scheduler(Root(root), clock, stop, start=start)
    place = scheduler.store.folder / NAME
    runner = TickRunner(Root(root), clock, stop, scheduler, run_command, start)
    backfill = plan_backfill(schedule, place, "3", "7", clock.now(), False)
    done = list(backfill.run(runner, keep_going=False))
    records = {record.run_id: record for record in Root(root).records.read_all()}
    rows = [
        (
            str(tick.spans),
            str(tick.starts),
            str(tick.status),
            tick.version or "",
            str(records[tick.run_id or ""].spans[0]["span"]),
            "yes" if _is_gated(records[tick.run_id or ""]) else "no",
        )
        for tick in done
    ]
    header = ("span", "starts", "status", "version", "span read", "passed the gate")
    print(f"Backfill of spans 3 to 7\n{format_table(header, rows)}")
    again = list(plan_backfill(schedule, place, "3", "7", clock.now(), False).run(runner, False))
    print(
        f"the same command again: {len(again)} runs; runs in the root: {len(records)}\n", flush=True
    )


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
