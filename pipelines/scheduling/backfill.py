"""Runs over a range of past spans, in order. The records show where to continue after a stop."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pipelines.config.data import DataConfig
from pipelines.config.span_selection import SpanKey, SpanSelection, find_holes, format_spans, parse_selection
from pipelines.data.spans import resolve_spans
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.records import UNFINISHED
from pipelines.scheduling.history import ENDED, History, Run
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.scheduler import Scheduler
from pipelines.scheduling.spans import check_has_windows, schedule_data, span_selection, span_tick_key
from pipelines.scheduling.ticks import Tick


@dataclass(frozen=True)
class Backfill:
    schedule: Schedule
    ticks: tuple[Tick, ...]

    def run(self, scheduler: Scheduler, keep_going: bool) -> Iterator[tuple[Tick, Run]]:
        """Runs the remaining ticks, and yields each with its run. Failed ones are run again."""
        for tick in self.ticks:
            runs = self._runs(scheduler.root, tick)
            if runs and runs[-1].status not in UNFINISHED:
                continue
            run = scheduler.run_tick(self.schedule, tick, again=True)
            yield tick, run
            if run.status == "failed" and not keep_going:
                return

    def summary(self, root: Root) -> dict[str, Any]:
        """Returns the number of spans by outcome, and the remaining spans."""
        newest = [(tick, self._runs(root, tick)[-1:]) for tick in self.ticks]
        counts = Counter(run.status for _, runs in newest for run in runs)
        left = [tick.spans for tick, runs in newest if not runs or runs[0].status not in ENDED]
        return {**{status: counts[status] for status in ENDED}, "left": left}

    @staticmethod
    def _runs(root: Root, tick: Tick) -> list[Run]:
        return History.read(root).runs_by_tick(tick.schedule).get(tick.key, [])


def plan_backfill(
    schedule: Schedule, root: Root, first: str, last: str, now: datetime, again: bool
) -> Backfill:
    """Returns a new backfill of these spans, or the newest existing one."""
    data = schedule_data(schedule)
    keys = _keys(data, first, last)
    stem = f"backfill-{keys[0]}..{keys[-1]}"
    pattern = re.compile(rf"{re.escape(stem)}-(\d+)-")
    matches = (pattern.match(key) for key in History.read(root).runs_by_tick(schedule.name))
    number = max((int(match[1]) for match in matches if match), default=1) + again
    return Backfill(
        schedule,
        tuple(Tick(schedule.name, f"{stem}-{number}-{key}", now, span_selection(data, key)) for key in keys),
    )


def _keys(data: DataConfig, first: str, last: str) -> list[SpanKey]:
    pattern = check_has_windows(data, "schedule backfill")
    ends = []
    for option, written in (("--from", first), ("--to", last)):
        try:
            end = parse_selection(written)
        except ValueError as error:
            raise BadInputError(f"{option} {written}: {error}.") from error
        if end.first is None or end.first != end.last or end.is_by_date != pattern.is_by_date:
            kind = "a date, such as 2026-01-31" if pattern.is_by_date else "a number, such as 7"
            raise BadInputError(f"{option} takes one span: {kind}. Received: {written!r}")
        ends.append(end.first)
    order = partial(span_tick_key, version=None)
    low, high = map(order, ends)
    if high < low:
        raise BadInputError(f"--from {first} --to {last}: the range runs backwards.")
    existing = sorted({place.span for place in pattern.places()}, key=order)
    keys = [key for key in existing if low <= order(key) <= high]
    if holes := find_holes(ends[0], ends[1], keys):
        raise BadInputError(
            f"--from {first} --to {last}: there is no span {holes} of {data.path}. Existing spans: "
            f"{format_spans(existing)}. Give ranges without gaps, one after another."
        )
    for key in keys:
        resolve_spans(data.path, SpanSelection(None, key, key))
    return keys
