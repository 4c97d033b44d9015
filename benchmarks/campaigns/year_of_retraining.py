"""A year of unattended weekly retraining: the served versions, the notifications, the files on disk.

    python -m benchmarks.campaigns.year_of_retraining [--weeks 52] [--work FOLDER]

Each Monday brings a span of generated trips, whose distances grow by a percent a week; a scheduler with an
injected clock runs the pipeline on it, and `[retention]` prunes the root. In one week the distances are
missing, in another one the labels are shuffled. For three weeks there is no scheduler; the one that is
started then has `--missed latest`: it runs the last of the missed weeks and skips the others.

With `--work` a stopped year continues.
"""

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from benchmarks.campaigns.forked_run import ForkedRun, import_all
from benchmarks.campaigns.retraining_spans import Row, rows_of_span, write_rows
from benchmarks.tables import format_table
from components.pusher.provenance import read_provenance
from pipelines.root import Root
from pipelines.root.history import run_of_version
from pipelines.root.records import RunRecord
from pipelines.scheduling.clock import Stop
from pipelines.scheduling.history import History
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.scheduler import Scheduler
from pipelines.scheduling.store import ScheduleStore

FIRST_WEEK = datetime(2026, 1, 5, 3, 0, tzinfo=timezone.utc)  # a Monday
NAME = "weekly"
ROWS = 800
GROWTH = 1.01
NO_MILES, SHUFFLED = 17, 38
OUTAGE = (25, 26, 27)
KEPT_RUNS, KEPT_VERSIONS = 20, 4
_A_MINUTE = 60.0

CONFIG = f"""\
name = "trips"
[data]
path = "spans/span-{{SPAN}}.csv"
label = "tipped"
exclude = ["passengers"]
[trainer]
model = "linear"
train_steps = 200
early_stopping = false
[evaluator]
slices = [[]]
[pusher]
keep = {KEPT_VERSIONS}
[retention]
runs = {KEPT_RUNS}
artifacts = 3
checkpoints = 1
[notify]
command = "tee -a FOLDER/told.jsonl"
"""

Week = dict[str, Any]
"""Outcome of a week; see `_outcome`."""


class YearClock:
    """A clock that is set from week to week; sleeping for a minute or more sets it forward."""

    def __init__(self) -> None:
        self.time = FIRST_WEEK

    def now(self) -> datetime:
        """Returns the time."""
        return self.time

    def monotonic(self) -> float:
        """Returns the seconds of this process, so that the durations of runs are real."""
        return time.monotonic()

    def sleep(self, secs: float) -> None:
        """Lets time pass; sleeps really if less than a minute, as for another process."""
        if secs < _A_MINUTE:
            time.sleep(secs)
        else:
            self.time += timedelta(seconds=secs)


def data_of_week(week: int) -> tuple[str, list[Row]]:
    """Returns a description of the data of a week, and the data."""
    rows = rows_of_span(week, GROWTH ** (week - 1))[:ROWS]
    if week == NO_MILES:
        return "no miles", [{**row, "miles": ""} for row in rows]
    if week == SHUFFLED:
        labels = [row["tipped"] for row in rows]
        random.Random(week).shuffle(labels)
        return "labels shuffled", [
            {**row, "tipped": label} for row, label in zip(rows, labels, strict=True)
        ]
    return f"miles x {GROWTH ** (week - 1):.2f}", rows


def run_year(folder: Path, weeks: int) -> list[Week]:
    """Runs the weeks that are not done yet, and returns the outcomes of all."""
    import_all()
    os.chdir(folder)
    root, clock = folder / "root", YearClock()
    done = read_lines(folder / "weeks.jsonl")
    scheduler = Scheduler(Root(root), clock, Stop(), start=ForkedRun)
    for week in range(len(done) + 1, weeks + 1):
        begun = time.monotonic()
        data, rows = data_of_week(week)
        write_rows(folder / "spans" / f"span-{week}.csv", rows)
        clock.time = FIRST_WEEK + timedelta(weeks=week - 1, minutes=1)
        if week in OUTAGE:
            scheduler = Scheduler(Root(root), clock, Stop(), start=ForkedRun)  # as in a new process
            clock.time += timedelta(days=3)
        record = None
        if week not in OUTAGE[:-1]:
            scheduler.run_due()
            record = Root(root).records.newest()  # also if this program was stopped right after it
        done.append(_outcome(root, week, data, record))
        told = read_lines(folder / "told.jsonl")[sum(len(one["told"]) for one in done[:-1]) :]
        done[-1]["told"] = [one["id"] for one in told]
        done[-1]["secs"] = time.monotonic() - begun
        with (folder / "weeks.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(done[-1]) + "\n")
        print(" | ".join(table_row(done[-1], {one["id"]: one for one in told})), flush=True)
    return done


def _outcome(root: Path, week: int, data: str, record: RunRecord | None) -> Week:
    served = Root(root).versions.served()
    return {
        "week": week,
        "data": data,
        "run_id": record.run_id if record else None,
        "status": record.status if record else "down",
        "span": record.spans[0]["span"] if record else None,
        "auc": record.metrics.get("auc") if record else None,
        "serves": str(served[-1]) if served else None,
        "is_whole": bool(served) and all(is_whole(root, version) for version in served),
        "root_bytes": size_bytes(root),
    }


def is_whole(root: Path, version: int) -> bool:
    """Returns True if a version, its record, its run's model and its data's statistics all exist."""
    provenance = read_provenance(str(root / "serving"), version)
    return (
        provenance is not None
        and (root / "serving" / str(version) / "saved_model.pb").is_file()
        and Path(provenance.model_uri).is_dir()
        and run_of_version(Root(root), str(version)) is not None
    )


def table_row(week: Week, told: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Returns the row of the table for a week, with its notifications by id."""
    events = [told[name]["event"] for name in week["told"]]
    missed = [told[name]["missed"]["count"] for name in week["told"] if told[name]["missed"]]
    return (
        str(week["week"]),
        week["data"],
        week["status"],
        week["serves"] or "",
        "" if week["auc"] is None else f"{week['auc']:.4f}",
        ", ".join(events) + "".join(f" ({count})" for count in missed),
        f"{week['root_bytes'] / 1e6:.1f}",
        f"{week['secs']:.0f}",
    )


def show_disk(root: Path) -> None:
    """Prints the contents of the root, part by part."""
    parts = [*sorted((root / "artifacts").iterdir()), *sorted(root.glob("[!.]*"))]
    rows = [(str(part.relative_to(root)), f"{size_bytes(part) / 1e3:,.0f}") for part in parts]
    rows.append(("all", f"{size_bytes(root) / 1e3:,.0f}"))
    print(f"\nDisk\n{format_table(('part', 'kB'), rows)}")
    models = list(root.glob("artifacts/Trainer/*/model"))
    trainings = list(root.glob("artifacts/Trainer/*/model_run"))
    print(
        f"records: {len(list((root / 'runs').glob('*.json')))}, reports: "
        f"{len(list((root / 'runs').glob('[0-9]*.html')))}, versions: "
        f"{len(Root(root).versions.served())}, models: {len(models)}, training directories: {len(trainings)}"
    )


def checks(folder: Path, weeks: list[Week]) -> list[tuple[str, bool]]:
    """Returns the conditions for the year, and True for those that hold."""
    root = folder / "root"
    by_tick = History.read(Root(root)).runs_by_tick(NAME)
    told = read_lines(folder / "told.jsonl")
    runs = [week for week in weeks if week["status"] != "down"]
    spans = [week["span"] for week in runs]
    down = [week for week in weeks if week["week"] in OUTAGE]
    found = [
        (
            f"each of {len(runs)} ticks has one run, pruned ones included",
            [len(of_tick) for of_tick in by_tick.values()] == [1] * len(runs),
        ),
        ("no span was read twice", len(spans) == len(set(spans))),
        ("each run has its own run id", len({week["run_id"] for week in runs}) == len(runs)),
        (
            "the served versions are complete after each week",
            all(week["is_whole"] for week in weeks),
        ),
        (
            "no notification was sent twice",
            max(Counter(one["id"] for one in told).values(), default=1) == 1,
        ),
        (f"at most {KEPT_VERSIONS} versions", len(Root(root).versions.served()) <= KEPT_VERSIONS),
        # The records of the runs of the versions, and of the newest run that pushed, stay as well.
        (
            "old records are gone",
            len(Root(root).records.read_all()) <= KEPT_RUNS + KEPT_VERSIONS + 1,
        ),
    ]
    if len(down) == len(OUTAGE):
        found += [
            (
                "all weeks of the outage except the last are skipped",
                [week["status"] == "down" for week in down] == [True] * (len(OUTAGE) - 1) + [False],
            ),
            ("the last one is run, on its own span", down[-1]["span"] == OUTAGE[-1]),
            (
                "the outage is notified once, as 3 weeks",
                [one["missed"]["count"] for one in told if one["missed"]] == [len(OUTAGE)],
            ),
        ]
    for number, status in ((NO_MILES, "failed"), (SHUFFLED, "not_blessed")):
        if number <= len(weeks):
            week, before = weeks[number - 1], weeks[number - 2]
            events = [name for name in week["told"] if name.endswith(f"-{status}")]
            stopped = week["status"] == status and week["serves"] == before["serves"]
            found.append((f"week {number} ({week['data']}) is stopped: {status}", stopped))
            found.append((f"week {number} is notified once", len(events) == 1))
    return found


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Returns the objects of a file of JSON lines; none if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return []


def size_bytes(path: Path) -> int:
    """Returns the size of a file, or of all files below a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file() or file.is_symlink())


def main() -> None:
    """Runs the year, and prints the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--work", type=Path, help="keeps data and root there")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        work = arguments.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        folder = work.resolve()
        config = folder / "trips.toml"
        config.write_text(CONFIG.replace("FOLDER", str(folder)), encoding="utf-8")
        fields = {
            "name": NAME,
            "config": str(config),
            "working_dir": str(folder),
            "cron": "0 3 * * 1",
            "since": FIRST_WEEK - timedelta(days=1),
            "created": FIRST_WEEK - timedelta(days=1),
        }
        ScheduleStore(Root(folder / "root")).write(Schedule.model_validate(fields))
        weeks = run_year(folder, arguments.weeks)
        told = read_lines(folder / "told.jsonl")
        rows = [table_row(week, {one["id"]: one for one in told}) for week in weeks]
        header = ("week", "data", "status", "serves", "AUC", "told", "root MB", "s")
        print(f"\nThe year\n{format_table(header, rows)}")
        print("\nAlerts\n" + "\n".join(f"{one['time'][:10]} {one['text']}" for one in told))
        show_disk(folder / "root")
        found = checks(folder, weeks)
        print("\n" + "\n".join(f"{'yes' if holds else 'NO '}  {text}" for text, holds in found))
        if not all(holds for _, holds in found):
            sys.exit("not all conditions hold")


if __name__ == "__main__":
    main()
