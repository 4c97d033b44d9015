"""Selection of spans by `data.spans`."""

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SpanKey = int | datetime.date
"""Name of a span: the number in place of `{SPAN}`, or a date."""

_NUMBER = r"[0-9]{1,18}"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_KEY = rf"{_DATE}|{_NUMBER}"
_FORMS = (
    'the forms are "newest", "last 5", one span ("7" or "2026-01-31"), a range ("3..7" or '
    '"2026-01-01..2026-01-31"), and a window up to a span ("last 5 to 7")'
)
_ONE_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class SpanSelection:
    """Selected spans: either the newest, or all from `first` to `last`."""

    newest: int | None = 1  # Number of newest spans; None for a range
    first: SpanKey | None = None  # First span of a range
    # Last span of a range, included; the same as `first` for a single span. With `newest`,
    # the last span to consider; None for no limit
    last: SpanKey | None = None

    def __str__(self) -> str:
        """Returns the text for `parse_selection`."""
        if self.newest is not None and self.last is not None:
            return f"last {self.newest} to {self.last}"
        if self.newest is not None:
            return "newest" if self.newest == 1 else f"last {self.newest}"
        return _range_text(self.first, self.last)

    @property
    def is_by_date(self) -> bool | None:
        """True if it names dates, False for numbers; None if it does not name a span."""
        return None if self.last is None else isinstance(self.last, datetime.date)


NEWEST = SpanSelection()


def parse_selection(value: object) -> SpanSelection:
    if isinstance(value, bool) or not isinstance(value, str | int | datetime.date):
        raise ValueError(_FORMS)
    text = str(value).strip()
    if text == "newest":
        return NEWEST
    if match := re.fullmatch(rf"last\s+({_NUMBER})(?:\s+to\s+({_KEY}))?", text):
        if not int(match[1]):
            raise ValueError("a window holds at least one span")
        return SpanSelection(newest=int(match[1]), last=_key(match[2]) if match[2] else None)
    # `3-7` is a range, too; with dates it would not be clear which hyphen divides them.
    match = re.fullmatch(rf"({_KEY})(?:\s*\.\.\s*({_KEY}))?", text) or re.fullmatch(
        rf"({_NUMBER})\s*-\s*({_NUMBER})", text
    )
    if match is None:
        raise ValueError(_FORMS)
    first, last = _key(match[1]), _key(match[2] or match[1])
    if type(first) is not type(last):
        raise ValueError("a range is of two numbers, or of two dates")
    is_backwards = last < first  # type: ignore[operator]
    if is_backwards:
        raise ValueError(f'the range runs backwards: write "{last}..{first}"')
    return SpanSelection(None, first, last)


def _key(text: str) -> SpanKey:
    if re.fullmatch(_NUMBER, text):
        return int(text)
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text} is not a date: {error}") from error


def next_key(key: SpanKey) -> SpanKey:
    """Returns the span that follows: the next number, or the next day."""
    return key + 1 if isinstance(key, int) else key + _ONE_DAY


def format_spans(keys: Iterable[SpanKey]) -> str:
    """Returns spans as text, such as `1..4, 8`."""
    return ", ".join(_range_text(first, last) for first, last in _stretches(keys))


def _stretches(keys: Iterable[SpanKey]) -> Iterator[tuple[SpanKey, SpanKey]]:
    """Yields the first and the last span of each stretch without a gap."""
    stretch: tuple[SpanKey, SpanKey] | None = None
    for key in keys:
        if stretch is not None and key == next_key(stretch[1]):
            stretch = (stretch[0], key)
            continue
        if stretch is not None:
            yield stretch
        stretch = (key, key)
    if stretch is not None:
        yield stretch


def find_holes(first: SpanKey, last: SpanKey, present: Iterable[SpanKey]) -> str:
    """Returns the spans from `first` to `last` that are not present, as text; empty without one.

    The range may be far larger than the number of present spans.
    """
    holes = []
    wanted: SpanKey | None = first
    for start, end in _stretches(present):
        if wanted is not None and wanted != start:
            last_missing = start - 1 if isinstance(start, int) else start - _ONE_DAY
            holes.append(_range_text(wanted, last_missing))
        wanted = None if end == last else next_key(end)
    if wanted is not None:
        holes.append(_range_text(wanted, last))
    return ", ".join(holes)


def _range_text(first: SpanKey | None, last: SpanKey | None) -> str:
    return str(first) if first == last else f"{first}..{last}"
