"""Runs over a range of past spans, in order. Results are recorded, so a stopped backfill can continue."""

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
      schedule: Schedule with the configuration of the runs.
      ledger: Ledger of the backfill's ticks.
      ticks: One tick for each span, in order, as first created.
      begun: True if part of it was done before.
    """

    schedule: Schedule
    ledger: Ledger
    ticks: tuple[Tick, ...]
    begun: bool

    def run(self, runner: TickRunner, keep_going: bool) -> Iterator[Tick]:
        """Runs the remaining ticks, and yields each with its outcome.

        Failed ticks are run again. Ends at the first failure.

        Args:
          runner: Runner of a tick.
          keep_going: Continues after a failure.

        Raises:
          StoppedError: The process has to end.
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
        """Returns the number of spans by outcome, and the spans that are left."""
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
    """Returns a new backfill, or the one of these spans that was stopped.

    Args:
      schedule: Schedule with the configuration of the runs.
      folder: Folder of the schedule.
      first: First span: a number, or a date.
      last: Last span, included.
      now: Time in UTC.
      again: Starts over, even if part of it was done before.

    Raises:
      BadInputError: The range is invalid, or a span is missing.
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
    """Returns the sort key of spans, which are all numbers or all dates."""
    return key if isinstance(key, int) else key.toordinal()
