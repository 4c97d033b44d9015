"""Spans that have arrived since the last run, and the windows of spans that runs read."""

import datetime
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.config import DataConfig, load_config
from pipelines.data.span_pattern import Place, parse_span_pattern
from pipelines.data.span_selection import SpanKey, SpanSelection, parse_selection
from pipelines.data.spans import resolve_spans
from pipelines.errors import BadInputError
from pipelines.run_record import RunRecords
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import STATUSES, Tick, iso

PREFIX = "span-"
"""Of the keys of the ticks of spans."""


@dataclass(frozen=True)
class Arrival:
    """A span that is there.

    Attributes:
      key: Of its tick; later spans, and later versions, sort behind it.
      selection: `data.spans` of its run.
      since: When it was written, or moved to where it is.
      is_complete: Whether it can be read; False while it is being written.
    """

    key: str
    selection: str
    since: datetime.datetime
    is_complete: bool = True


FindArrivals = Callable[[Schedule, str], Sequence[Arrival]]
"""Returns the spans of a schedule's data whose keys are above one, ascending."""


def find_arrivals(schedule: Schedule, above: str) -> list[Arrival]:
    """Returns the spans of a schedule's data whose keys are above one, ascending.

    A span without a file is none, as in a run that takes the newest one.

    Raises:
      BadInputError: The configuration cannot be used, or the folder of the data cannot be read.
    """
    data = data_of(schedule)
    pattern = parse_span_pattern(data.path)
    if pattern is None:
        raise BadInputError(f"data.path = {data.path!r} has no spans any more.")
    newest: dict[SpanKey, Place] = {}
    for place in pattern.places():
        known = newest.get(place.span)
        if known is None or (known.version or 0) <= (place.version or 0):
            newest[place.span] = place
    found = []
    for span in sorted(newest, key=str if pattern.is_by_date else int):  # type: ignore[arg-type]
        place = newest[span]
        key = span_tick_key(span, place.version)
        if key <= above:
            continue
        try:
            read = resolve_spans(data.path, SpanSelection(None, span, span)).spans[0]
        except BadInputError:
            # With finished files, it is being written; without any, it is an empty folder.
            if any(item.is_file() for item in _inside(place.path)):
                selection = span_selection(data, span)
                found.append(Arrival(key, selection, _since([place.path]), is_complete=False))
            continue
        key = span_tick_key(span, read.version)
        if key > above:
            since = _since([place.path, *read.files])
            found.append(Arrival(key, span_selection(data, span), since))
    return found


def new_arrivals(
    schedule: Schedule, ledger: Ledger, root: Path, find: FindArrivals
) -> list[Arrival]:
    """Returns the spans that are newer than that of the last run, ascending.

    The last run may be one that somebody has started by hand.
    """
    newest = ledger.newest(PREFIX)
    above = newest.key if newest else ""
    arrivals = find(schedule, above)
    if not arrivals:
        return []
    above = max(above, _newest_of_runs(root))
    return [one for one in arrivals if one.key > above]


def span_tick(schedule: str, arrival: Arrival, now: datetime.datetime) -> Tick:
    """Returns the tick of a span."""
    return Tick(schedule, arrival.key, iso(min(arrival.since, now)), spans=arrival.selection)


def span_tick_key(span: SpanKey, version: int | None) -> str:
    """Returns the key of the tick of a span, such as `span-000000000000000007-v000000000000000002`."""
    name = f"{span:018d}" if isinstance(span, int) else span.isoformat()
    return f"{PREFIX}{name}" + ("" if version is None else f"-v{version:018d}")


def span_selection(data: DataConfig, span: SpanKey) -> str:
    """Returns `data.spans` of the run of one span: the window of the configuration, up to this span."""
    newest = data.selection.newest
    return str(SpanSelection(None, span, span) if newest == 1 else SpanSelection(newest, last=span))


def check_has_windows(data: DataConfig, asked: str) -> None:
    """Checks that there are spans, and that which of them are read is not fixed.

    Args:
      data: `[data]`.
      asked: What needs it, such as `--on-new-span`.

    Raises:
      BadInputError: It is not so.
    """
    if parse_span_pattern(data.path) is None:
        raise BadInputError(
            f"{asked} needs spans: data.path = {data.path!r} has no {{SPAN}}, nor {{YYYY}}, {{MM}} and "
            "{DD}."
        )
    if data.selection.newest is None or data.selection.last is not None:
        raise BadInputError(
            f"{asked} sets which span is read, and data.spans = {data.spans!r} names fixed ones: write "
            '"newest", or "last N" for a window.'
        )


def data_of(schedule: Schedule) -> DataConfig:
    """Returns `[data]` of a schedule's runs as it is now, with an absolute path.

    Raises:
      BadInputError: The configuration cannot be used.
    """
    data = load_config(Path(schedule.config), settings=schedule.settings).data
    return data.model_copy(update={"path": os.path.join(schedule.working_dir, data.path)})


def _newest_of_runs(root: Path) -> str:
    """Returns the key of the newest span that a run of the root has dealt with; empty without one."""
    keys = [""]
    for record in RunRecords(root).read_all():
        if record.spans and record.status in STATUSES and record.status != "failed":
            newest = record.spans[-1]
            span = parse_selection(newest["span"]).first
            if span is not None:
                keys.append(span_tick_key(span, newest["version"]))
    return max(keys)


def _since(paths: Sequence[Path]) -> datetime.datetime:
    # The time of the change of the entry, not of the content: a file may have been written elsewhere.
    newest = max(path.stat().st_ctime for path in paths)
    return datetime.datetime.fromtimestamp(newest, datetime.timezone.utc)


def _inside(place: Path) -> list[Path]:
    return list(place.rglob("*")) if place.is_dir() else [place]
