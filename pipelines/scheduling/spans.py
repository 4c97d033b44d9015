"""The new spans of a schedule's data, and the window of spans that each run reads."""

import datetime
import os
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from pipelines.config.data_url import is_url
from pipelines.config.load import load_config
from pipelines.config.pipeline_config import DataConfig
from pipelines.config.span_pattern import SpanPattern, before_placeholder, parse_span_pattern
from pipelines.config.span_selection import SpanKey, SpanSelection, parse_selection
from pipelines.data.spans import resolve_spans
from pipelines.errors import BadInputError
from pipelines.root.records import UNFINISHED
from pipelines.scheduling.history import History
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import SPAN_PREFIX, Tick, is_span_key, time_of_key, time_tick

FindArrivals = Callable[[Schedule, AbstractSet[str]], Sequence[Tick]]
"""Function that returns the ticks of a schedule's spans, except those with some keys, in ascending order."""


@dataclass(frozen=True)
class NewSpans:
    """Spans that have arrived and were neither run nor skipped."""

    arrivals: tuple[Tick, ...]  # by key, not in the order of arrival
    newest: str  # key of the newest span that was run or skipped; empty without one
    # Keys of spans that existed before the schedule and are not run; None once they are stored, or while the
    # folder of the data is missing: its volume may be mounted later.
    old: frozenset[str] | None = None


def find_arrivals(schedule: Schedule, handled: AbstractSet[str]) -> list[Tick]:
    """Returns the ticks of a schedule's spans in ascending order, each in its newest version.

    A span is due when it was written, or moved to its place. One without a file is left out, as in a run that
    takes the newest span.
    """
    data = schedule_data(schedule)
    pattern = parse_span_pattern(data.path)
    if pattern is None:
        raise BadInputError(f"data.path = {data.path!r} no longer has spans.")
    by_version = sorted(pattern.places(), key=lambda location: location.version or 0)
    newest = {location.span: location for location in by_version}
    ticks = []
    for span in sorted(newest, key=str if pattern.is_by_date else int):  # type: ignore[arg-type]
        location = newest[span]
        key = span_tick_key(span, location.version)
        if key in handled:
            continue
        selection = span_selection(data, span)
        try:
            read = resolve_spans(data.path, SpanSelection(None, span, span)).spans[0]
        except BadInputError:
            # With finished files, it is being written; without any, it is an empty folder.
            inside = location.path.rglob("*") if location.path.is_dir() else [location.path]
            if any(item.is_file() for item in inside):
                since = _changed([location.path])
                ticks.append(Tick(schedule.name, key, since, selection, is_complete=False))
            continue
        key = span_tick_key(span, read.version)
        if key not in handled:
            since = _changed([location.path, *read.files])
            ticks.append(Tick(schedule.name, key, since, selection))
    return ticks


def new_arrivals(schedule: Schedule, history: History, find: FindArrivals = find_arrivals) -> NewSpans:
    """Returns the spans that neither the schedule nor a run started by hand has handled.

    They include a span that arrives after a later one, and a new version of an old span, but not spans that
    existed before the schedule. If these are not stored yet, they are all spans up to the newest that was
    handled; or, if none was, all but the newest.
    """
    passed = schedule.passed_spans
    handled = set(filter(is_span_key, history.runs_by_tick(schedule.name))).union(passed or ())
    arrivals = tuple(find(schedule, handled))
    if not arrivals:
        folder = os.path.dirname(before_placeholder(schedule_data(schedule).path))
        is_settled = passed is None and os.path.isdir(folder)
        return NewSpans((), max(handled, default=""), frozenset() if is_settled else None)
    handled |= spans_of_runs(history)
    newest = max(handled, default="")
    new = tuple(arrival for arrival in arrivals if arrival.key not in handled)
    if passed is not None:
        return NewSpans(new, newest)
    complete = (arrival.key for arrival in arrivals if arrival.is_complete)
    first = newest or max(complete, default="")
    old = frozenset(arrival.key for arrival in new if arrival.key < first)
    return NewSpans(tuple(arrival for arrival in new if arrival.key not in old), newest, old)


def spans_of_runs(history: History) -> set[str]:
    """Returns the keys of all spans that the runs of a root have read, unless the run failed."""
    return {
        span_tick_key(key, span.get("version"))
        for run in history.runs
        if run.status not in UNFINISHED
        for span in run.spans
        if (key := parse_selection(span["span"]).first) is not None
    }


def span_tick_key(span: SpanKey, version: int | None) -> str:
    """Returns the key of the tick of a span, such as `span-000000000000000007-v000000000000000002`."""
    name = f"{span:018d}" if isinstance(span, int) else span.isoformat()
    return f"{SPAN_PREFIX}{name}" + ("" if version is None else f"-v{version:018d}")


def tick_of_key(schedule: Schedule, key: str, now: datetime.datetime) -> Tick:
    """Returns the tick of a time, or of a span whose run was started before."""
    if (time := time_of_key(key)) is not None:
        return time_tick(schedule.name, time)
    last = parse_selection(span_name(key)).last
    spans = None if last is None else span_selection(schedule_data(schedule), last)
    return Tick(schedule.name, key, now, spans)


def span_name(key: str) -> str:
    """Returns a span in the form of a backfill's `--from` and `--to`, such as `7` or `2026-01-31`."""
    name = key.removeprefix(SPAN_PREFIX).partition("-v")[0]
    return str(int(name)) if name.isdecimal() else name


def span_selection(data: DataConfig, span: SpanKey) -> str:
    """Returns `data.spans` for the run of one span: the configured window, ending at this span."""
    newest = data.selection.newest
    return str(SpanSelection(None, span, span) if newest == 1 else SpanSelection(newest, last=span))


def check_has_windows(data: DataConfig, asked: str) -> SpanPattern:
    """Returns the pattern of the spans; refuses data without it, and `data.spans` with fixed ones."""
    pattern = parse_span_pattern(data.path)
    if pattern is None:
        raise BadInputError(
            f"{asked} needs spans: data.path = {data.path!r} has no {{SPAN}}, nor {{YYYY}}, {{MM}} and "
            "{DD}."
        )
    if is_url(data.path):
        raise BadInputError(f"{asked} finds spans in folders of this machine only. Give --cron or --every.")
    if data.selection.newest is None or data.selection.last is not None:
        raise BadInputError(
            f"{asked} sets which span is read, and data.spans = {data.spans!r} names fixed ones: write "
            '"newest", or "last N" for a window.'
        )
    return pattern


def schedule_data(schedule: Schedule) -> DataConfig:
    """Returns the present `[data]` of a schedule's runs, with an absolute path."""
    data = load_config(schedule.config_file, settings=schedule.settings).data
    path = data.path if is_url(data.path) else os.path.join(schedule.working_dir, data.path)
    return data.model_copy(update={"path": path})


def _changed(paths: Sequence[Path]) -> datetime.datetime:
    # The change time of the entry, not of the content: a file may have been written elsewhere.
    newest = max(path.stat().st_ctime for path in paths)
    return datetime.datetime.fromtimestamp(newest, datetime.timezone.utc)
