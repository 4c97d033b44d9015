"""The state of a root's schedules, as `schedule list`, `schedule check` and the metrics show it."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.errors import DamagedFileError
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.due import Due, find_due, is_future, next_time
from pipelines.scheduling.durations import format_duration
from pipelines.scheduling.history import ENDED, History, Run, unfinished_keys
from pipelines.scheduling.receivers import Receivers
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.spans import FindArrivals, find_arrivals
from pipelines.scheduling.store import ScheduleStore, is_scheduled
from pipelines.scheduling.ticks import iso, time_of_key


@dataclass(frozen=True)
class Standing:
    """State of a schedule.

    Attributes:
      schedule: The schedule itself.
      next_time: Time of the next run, possibly past; None if unknown.
      running: Key of the tick whose run is active, or about to be resumed by a scheduler; None without one.
      interrupted: Key of the tick whose run was stopped or killed, with no scheduler to resume it; or None.
      last: Newest run that has ended.
      last_good: Newest run that has ended without failing.
      counts: Number of runs by status, from the beginning.
      due: Ticks that are due.
      not_told: Error of the notification of the last run; empty without one.
      problem: Reason why the due ticks are unknown; None if they are known.
    """

    schedule: Schedule
    next_time: datetime | None
    running: str | None
    interrupted: str | None
    last: Run | None
    last_good: Run | None
    counts: Counter[str]
    due: Due
    not_told: str
    problem: str | None

    def late_secs(self, now: datetime) -> float:
        """Returns the time for which the oldest late tick has been due; 0 without one."""
        late = self.due.late
        return (now - late[0].due).total_seconds() if late else 0.0

    def as_json(self, now: datetime) -> dict[str, Any]:
        """Returns the fields that `schedule list --json` prints."""
        last = self.last
        return {
            "name": self.schedule.name,
            "when": self.schedule.when(),
            "config": self.schedule.config,
            "enabled": self.schedule.enabled,
            "missed": self.schedule.missed,
            "next": iso(self.next_time) if self.next_time else None,
            "running": self.running,
            "interrupted": self.interrupted,
            "last": {
                "tick": str(last.scheduled_by).partition("/")[2],
                "finished": last.finished,
                "run_id": last.run_id,
                "status": last.status,
                "reason": getattr(last, "reason", None),
                "version": last.version,
            }
            if last
            else None,
            "counts": dict(self.counts),
            "due": self.due.count,
            "late": len(self.due.late),
            "late_secs": round(self.late_secs(now)),
            "notification_error": self.not_told or None,
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Overview:
    """State of all schedules of a root.

    Attributes:
      now: Time at which it was looked at, UTC.
      standings: State of each schedule that can be read, by name.
      damaged: Errors of the files of schedules and runs that cannot be read.
      strange: One sentence for each thing that is ignored: files that are no schedules, and times from the
        future.
      num_future: Number of runs, ticks and schedules from the future.
    """

    now: datetime
    standings: Sequence[Standing]
    damaged: Sequence[str]
    strange: Sequence[str]
    num_future: int

    def problems(self) -> list[str]:
        """Returns one sentence for each reason why something does not run: late, stopped, or unknown."""
        lines = list(self.damaged)
        for standing in self.standings:
            name, late = standing.schedule.name, standing.due.late
            if late:
                minutes = format_duration(standing.late_secs(self.now) // 60 * 60)
                lines.append(
                    f"{name}: {len(late)} late, the oldest by {minutes}: it was due at {iso(late[0].due)}"
                )
            if standing.interrupted is not None and standing.schedule.enabled:
                lines.append(
                    f"{name}: the run of {standing.interrupted} was stopped or killed, and no scheduler "
                    "is working that could resume it"
                )
            if standing.problem is not None and standing.schedule.enabled:
                lines.append(f"{name}: {standing.problem}")
        return lines

    def remarks(self) -> list[str]:
        """Returns one sentence for each thing that keeps nothing from running."""
        not_told = (
            f"{standing.schedule.name}: the notification of the last run failed: {standing.not_told}"
            for standing in self.standings
            if standing.not_told
        )
        return [*self.strange, *not_told]


def look(root: Root, now: datetime, find: FindArrivals = find_arrivals) -> Overview:
    """Returns the state of the schedules of a root."""
    store, history = ScheduleStore(root), History.read(root)
    schedules, damaged = store.read_all()
    is_busy = is_scheduled(store.folder) or root.lock.is_held()
    strange = [
        f"{file} is not the file of a schedule, and is ignored. Remove it, or rename it."
        for file in store.strangers()
    ]
    read = {run.run_id for run in history.runs}
    damaged += [
        f"{root.records.file(run_id)} is not the record of a run, and is ignored. Restore it, or remove it."
        for run_id in root.records.ids()
        if run_id not in read
    ]
    damaged += root.pruned.errors()
    locks = (root.lock.writing, root.lock.local_kubeflow, *store.locks())
    damaged += filter(None, (lock.fault() for lock in locks))
    damaged += [
        f"{folder} is not a folder. Restore it, or remove it."
        for folder in (root.runs, store.folder)
        if os.path.lexists(folder) and not folder.is_dir()
    ]
    for schedule in schedules:
        try:
            Receivers.read(store.state(schedule.name))
        except DamagedFileError as error:
            damaged.append(str(error))
    future = _future(schedules, history, now)
    return Overview(
        now,
        [_standing(schedule, history, now, find, is_busy) for schedule in schedules],
        damaged,
        [*strange, *(f"{text}: the clock was wrong then; it is ignored" for text in future)],
        len(future),
    )


def _standing(
    schedule: Schedule, history: History, now: datetime, find: FindArrivals, is_busy: bool
) -> Standing:
    runs = history.of(schedule.name, now)
    due, problem = Due(), None
    try:
        due = find_due(schedule, history, now, find)
    except Exception as error:  # one schedule must not hide the others
        problem = str(error) or repr(error)
    all_runs = [
        run for run in history.runs if (run.scheduled_by or "").startswith(f"{schedule.name}/")
    ]
    ended = [run for run in all_runs if run.status in ENDED]
    unfinished = next(iter(unfinished_keys(schedule, runs)), None)
    last = next(reversed(ended), None)
    notification = last.notification if isinstance(last, RunRecord) else ""
    return Standing(
        schedule=schedule,
        next_time=next_time(schedule, runs, now),
        running=unfinished if is_busy else None,
        interrupted=None if is_busy else unfinished,
        last=last,
        last_good=next((run for run in reversed(ended) if run.status != "failed"), None),
        counts=Counter(run.status for run in ended),
        due=due,
        not_told="" if notification == "pending" else notification,
        problem=problem,
    )


def _future(schedules: Sequence[Schedule], history: History, now: datetime) -> list[str]:
    """Returns what has a time from the future, in words."""
    runs = (
        f"the run {run.run_id} began at {run.started}"
        for run in history.runs
        if is_future(datetime.fromisoformat(run.started), now)
    )
    ticks = (
        f"the run {run.run_id} is that of {run.scheduled_by}"
        for run in history.runs
        if (time := time_of_key((run.scheduled_by or "").partition("/")[2]))
        and is_future(time, now)
    )
    starts = (
        f"the schedule {schedule.name!r} begins at {iso(schedule.since)}"
        for schedule in schedules
        if is_future(schedule.since, now)
    )
    return [*runs, *ticks, *starts]


def table(found: Sequence[Standing]) -> Any:
    """Returns schedules as a `rich.table.Table`."""
    from rich.table import Table

    names = ("schedule", "when", "next (UTC)", "last run", "status", "version", "")
    made = Table(*names, box=None)
    for standing in found:
        last = standing.last
        marks = {
            "disabled": not standing.schedule.enabled,
            "running": standing.running,
            "INTERRUPTED": standing.interrupted,
            f"LATE: {len(standing.due.late)}": standing.due.late,
            "PROBLEM": standing.problem,
            "NOT NOTIFIED": standing.not_told,
        }
        made.add_row(
            standing.schedule.name,
            standing.schedule.when(),
            f"{standing.next_time:%Y-%m-%d %H:%M:%S}" if standing.next_time else "",
            last.run_id if last else "",
            last.status if last else "",
            (last.version or "") if last else "",
            ", ".join(mark for mark, applies in marks.items() if applies),
        )
    return made
