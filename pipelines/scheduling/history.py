"""The runs of the schedules, by tick, read from the records and from the lines that `prune` leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.root import Root
from pipelines.root.history import has_wrong_clock, read_runs
from pipelines.root.records import UNFINISHED, PrunedRun, RunRecord, Status, order_key
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import is_span_key, time_of_key

Run = RunRecord | PrunedRun

ENDED: tuple[Status, ...] = ("pushed", "unchanged", "finished", "held", "not_blessed", "failed")

RunsByTick = Mapping[str, Sequence[Run]]
"""The runs of each tick of a schedule, by the key of the tick; oldest first."""


@dataclass(frozen=True)
class History:
    """All runs of a root, oldest first, as they were when it was read."""

    runs: tuple[Run, ...]

    @classmethod
    def read(cls, root: Root) -> "History":
        """Reads the records of a root; killed runs are `interrupted`."""
        runs: list[Run] = [*root.pruned.read_all(), *read_runs(root)]
        return cls(tuple(sorted(runs, key=lambda run: order_key(run.number, run.run_id))))

    def runs_by_tick(self, schedule: str, now: datetime | None = None) -> dict[str, list[Run]]:
        """Returns the runs of a schedule by tick; with `now`, without those of a time that is yet to come."""
        by_tick: dict[str, list[Run]] = {}
        for run in self.runs:
            name, _, key = (run.scheduled_by or "").partition("/")
            is_early = now and time_of_key(key) and has_wrong_clock(run, now)  # a span has come
            if name == schedule and key and not is_early:
                by_tick.setdefault(key, []).append(run)
        return by_tick


def is_over(runs: Sequence[Run], retries: int) -> bool:
    """Returns whether a tick is done: none of its runs is active, to be resumed, or to be retried."""
    newest = runs[-1]
    if isinstance(newest, RunRecord) and newest.status == "failed":
        return newest.is_bad_input or num_starts(runs) > retries
    return isinstance(newest, PrunedRun) or newest.status not in UNFINISHED


def num_starts(runs: Sequence[Run]) -> int:
    """Returns how often a tick was started; a start that failed before there was a run counts, too."""
    return sum(max(1, run.attempt) for run in runs if isinstance(run, RunRecord))


def unfinished_keys(schedule: Schedule, runs: RunsByTick) -> list[str]:
    """Returns the keys of the ticks that were started and are to be continued, in ascending order.

    Those of a backfill and of `--now` are continued by the same command.
    """
    return sorted(
        key
        for key, tick_runs in runs.items()
        if not is_over(tick_runs, schedule.retries)
        and (is_span_key(key) or (time_of_key(key) or schedule.since) > schedule.since)
        and key not in (schedule.passed_spans or ())
    )
