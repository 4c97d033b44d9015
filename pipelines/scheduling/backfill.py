"""Runs over a range of past spans, in their order. What was done is kept: it goes on where it was stopped."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, remove, write_json
from pipelines.config.span_pattern import parse_span_pattern
from pipelines.config.span_selection import (
    SpanKey,
    SpanSelection,
    find_holes,
    format_spans,
    parse_selection,
)
from pipelines.data.spans import resolve_spans
from pipelines.errors import BadInputError
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.span_arrival import check_has_windows, data_of, span_selection
from pipelines.scheduling.tick_runner import TickRunner
from pipelines.scheduling.ticks import STATUSES, Tick, iso, key_of_time


@dataclass(frozen=True)
class Backfill:
    """A backfill of a schedule.

    Attributes:
      schedule: Whose configuration its runs have.
      ledger: What became of its ticks.
      ticks: One for each span, in their order, as they were at first.
      begun: True if some of it was done before.
    """

    schedule: Schedule
    ledger: Ledger
    ticks: tuple[Tick, ...]
    begun: bool

    def run(self, runner: TickRunner, keep_going: bool) -> Iterator[Tick]:
        """Runs what is not done yet, and yields each tick with its outcome.

        What has failed is run again. Ends at the first that fails.

        Args:
          runner: Runs a tick.
          keep_going: True if it goes on after one that fails.

        Raises:
          StoppedError: The process is to end.
        """
        for tick in self.ticks:
            known = self.ledger.read(tick.key)
            if known is not None and known.state == "done":
                if known.status != "failed":
                    continue
                for file in self.ledger.output_files(known):
                    remove(file)
                self.ledger.write(tick)
            done = runner.run(self.schedule, self.ledger, tick)
            yield done
            if done.status == "failed" and not keep_going:
                return

    def summary(self) -> dict[str, Any]:
        """Returns how many spans were run, with which outcome, and which are left."""
        known = [self.ledger.read(tick.key) for tick in self.ticks]
        done = [tick for tick in known if tick is not None and tick.state == "done"]
        left = [
            tick.spans
            for tick, found in zip(self.ticks, known, strict=True)
            if found is None or found.state != "done"
        ]
        counts = Counter(tick.status for tick in done)
        return {**{status: counts[status] for status in STATUSES}, "left": left}


def plan_backfill(
    schedule: Schedule, folder: Path, first: str, last: str, now: datetime, again: bool
) -> Backfill:
    """Returns a backfill: a new one, or the one of these spans that was stopped.

    Args:
      schedule: Whose configuration its runs have.
      folder: Of the schedule.
      first: Of the spans: a number, or a date.
      last: Of them, included.
      now: UTC.
      again: True if all of it is done anew.

    Raises:
      BadInputError: The range is none, or a span is not there.
    """
    keys = _keys(schedule, first, last)
    place = folder / "backfills" / f"{keys[0]}..{keys[-1]}.json"
    try:
        known = None if again else read_json(place)
    except FileNotFoundError:
        known = None
    if known is None:
        known = {"id": key_of_time(now), "created": iso(now)}
        write_json(place, known)
    data = data_of(schedule)
    ledger = Ledger(folder / "backfills" / f"{keys[0]}..{keys[-1]}-{known['id']}", schedule.name)
    ticks = tuple(
        Tick(
            schedule.name,
            f"backfill-{known['id']}-{key:018d}"
            if isinstance(key, int)
            else f"backfill-{known['id']}-{key}",
            known["created"],
            spans=span_selection(data, key),
        )
        for key in keys
    )
    return Backfill(schedule, ledger, ticks, bool(ledger.keys()))


def _keys(schedule: Schedule, first: str, last: str) -> list[SpanKey]:
    data = data_of(schedule)
    check_has_windows(data, "schedule backfill")
    pattern = parse_span_pattern(data.path)
    if pattern is None:
        raise ValueError(f"It was checked that there are spans. Received: {data.path}")
    ends = []
    for option, given in (("--from", first), ("--to", last)):
        try:
            end = parse_selection(given)
        except ValueError as error:
            raise BadInputError(f"{option} {given}: {error}.") from error
        if end.first is None or end.first != end.last or end.is_by_date != pattern.is_by_date:
            kind = "a date, such as 2026-01-31" if pattern.is_by_date else "a number, such as 7"
            raise BadInputError(f"{option} takes one span: {kind}. Received: {given!r}")
        ends.append(end.first)
    low, high = ends
    there = sorted({place.span for place in pattern.places()}, key=_order)
    keys = [key for key in there if _order(low) <= _order(key) <= _order(high)]
    if _order(high) < _order(low):
        raise BadInputError(f"--from {first} --to {last}: the range runs backwards.")
    holes = find_holes(low, high, keys)
    if holes:
        raise BadInputError(
            f"--from {first} --to {last}: there is no span {holes} of {data.path}. There: "
            f"{format_spans(there)}. Give a range without holes, one after another."
        )
    for key in keys:
        resolve_spans(data.path, SpanSelection(None, key, key))
    return keys


def _order(key: SpanKey) -> int:
    """Returns what spans are sorted by; all of them are numbers, or all are dates."""
    return key if isinstance(key, int) else key.toordinal()
