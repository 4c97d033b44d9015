"""The state of a root's schedules, as `schedule list`, `schedule check` and the metrics show it."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.errors import DamagedFileError
from pipelines.root import Root
from pipelines.root.records import RunRecord
from pipelines.scheduling.due import Due, find_due, is_future, next_time
from pipelines.scheduling.history import ENDED, History, Run, unfinished_keys
from pipelines.scheduling.receivers import Receivers
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.store import ScheduleStore, is_scheduled
from pipelines.scheduling.ticks import iso, time_of_key
from pipelines.scheduling.timetable import format_duration


@dataclass(frozen=True)
class Standing:
    """State of a schedule."""

    schedule: Schedule
    next_time: datetime | None  # possibly past; None if unknown
    running: str | None  # tick whose run is active, or about to be resumed by a scheduler
    interrupted: str | None  # tick whose run was stopped or killed, with no scheduler to resume it
    last: Run | None  # newest that has ended
    last_good: Run | None  # newest that has ended without failing
    counts: Counter[str]  # runs by status, from the beginning
    due: Due
    not_told: str  # error of the notification of the last run; empty without one
    late_secs: float  # time for which the oldest late tick has been due; 0 without one
    problem: str | None  # why the due ticks are unknown

    def as_json(self) -> dict[str, Any]:
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
            "late_secs": round(self.late_secs),
            "notification_error": self.not_told or None,
            "problem": self.problem,
        }


@dataclass(frozen=True)
class Overview:
    """State of all schedules of a root at one time; what is reported is one sentence each."""

    standings: Sequence[Standing]  # of the schedules that can be read, by name
    damaged: Sequence[str]  # files of schedules and runs that cannot be read
    strange: Sequence[str]  # ignored files, which are not schedules
    future: Sequence[str]  # runs, ticks and schedules with a time in the future

    def problems(self) -> list[str]:
        """Returns the reasons why something does not run: damaged, late, stopped, or unknown."""
        lines = list(self.damaged)
        for standing in self.standings:
            name, late = standing.schedule.name, standing.due.late
            if late:
                minutes = format_duration(standing.late_secs // 60 * 60)
                lines.append(
                    f"{name}: {len(late)} late, the oldest by {minutes}: it was due at {iso(late[0].due)}"
                )
            if standing.interrupted is not None and standing.schedule.enabled:
                lines.append(
                    f"{name}: the run of {standing.interrupted} was stopped or killed, and no scheduler "
                    "is running that could resume it"
                )
            if standing.problem is not None and standing.schedule.enabled:
                lines.append(f"{name}: {standing.problem}")
        return lines

    def remarks(self) -> list[str]:
        """Returns the remarks that do not keep anything from running."""
        not_told = (
            f"{standing.schedule.name}: the notification of the last run failed: {standing.not_told}"
            for standing in self.standings
            if standing.not_told
        )
        future = (f"{text}: the clock was wrong then; it is ignored" for text in self.future)
        return [*self.strange, *future, *not_told]


def look(root: Root, now: datetime) -> Overview:
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
    standings = [_standing(schedule, history, now, is_busy) for schedule in schedules]
    return Overview(standings, damaged, strange, list(_future(schedules, history, now)))


def _standing(schedule: Schedule, history: History, now: datetime, is_busy: bool) -> Standing:
    runs = history.runs_by_tick(schedule.name, now)
    due, problem = Due(), None
    try:
        due = find_due(schedule, history, now)
    except Exception as error:  # one schedule must not hide the others
        problem = str(error) or repr(error)
    unfinished = next(iter(unfinished_keys(schedule, runs)), None)
    own = (run for run in history.runs if (run.scheduled_by or "").startswith(f"{schedule.name}/"))
    ended = [run for run in own if run.status in ENDED]
    last = ended[-1] if ended else None
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
        late_secs=(now - due.late[0].due).total_seconds() if due.late else 0.0,
        not_told="" if notification == "pending" else notification,
        problem=problem,
    )


def _future(schedules: Sequence[Schedule], history: History, now: datetime) -> Iterator[str]:
    """Yields what has a time from the future, in words."""
    for run in history.runs:
        if is_future(datetime.fromisoformat(run.started), now):
            yield f"the run {run.run_id} began at {run.started}"
    for run in history.runs:
        time = time_of_key((run.scheduled_by or "").partition("/")[2])
        if time and is_future(time, now):
            yield f"the run {run.run_id} is that of {run.scheduled_by}"
    for schedule in schedules:
        if is_future(schedule.since, now):
            yield f"the schedule {schedule.name!r} begins at {iso(schedule.since)}"


def table(standings: Sequence[Standing]) -> Any:
    """Returns schedules as a `rich.table.Table`."""
    from rich.table import Table

    made = Table("schedule", "when", "next (UTC)", "last run", "status", "version", "", box=None)
    for standing in standings:
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
            *((last.run_id, last.status, last.version or "") if last else ("", "", "")),
            ", ".join(mark for mark, applies in marks.items() if applies),
        )
    return made
