"""Resolves a path with `{SPAN}` or a date, and a selection of spans, to the files of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.config.span_pattern import Place, SpanPattern, is_temporary, parse_span_pattern
from pipelines.config.span_selection import SpanKey, SpanSelection, find_holes, format_spans, parse_selection
from pipelines.data.byte_checks import readable
from pipelines.data.files import NoCsvFileError, find_csv_files
from pipelines.errors import BadInputError

SpanRecord = dict[str, Any]
"""A span in the record of a run: `span` (a number, or a date as text), `version`, `num_files`."""

_MAX_NAMES = 3


@dataclass(frozen=True)
class Span:
    key: SpanKey
    version: int | None  # Version that is read; None if the spans have none
    files: tuple[Path, ...]  # Files of this version, absolute paths in the order in which they are read

    def as_record(self) -> SpanRecord:
        """Returns the span as the record of a run holds it."""
        name = self.key if isinstance(self.key, int) else self.key.isoformat()
        return {"span": name, "version": self.version, "num_files": len(self.files)}


@dataclass(frozen=True)
class ResolvedSpans:
    """The spans that a run reads."""

    path: str
    spans: tuple[Span, ...]  # Spans in ascending order
    notes: tuple[str, ...] = ()  # Notes for the user, one sentence each

    @property
    def files(self) -> list[Path]:
        """All files, those of older spans first."""
        return [file for span in self.spans for file in span.files]

    def as_records(self) -> tuple[SpanRecord, ...]:
        """Returns the spans as the record of a run holds them."""
        return tuple(span.as_record() for span in self.spans)


def resolve_spans(
    path: str,
    selection: SpanSelection,
    find: Callable[[str], list[Path]] = find_csv_files,
    pinned: Sequence[SpanRecord] = (),
) -> ResolvedSpans:
    """Returns the spans that a run reads, and their files. Writes nothing.

    The newest version of a span is used. When the newest spans are selected, a span or a version without a
    finished file is skipped with a note; one with finished and unfinished files is refused.

    `find`: function from a path (file, folder or pattern) to its files; raises NoCsvFileError if there are
    none.
    """
    pattern = parse_span_pattern(path)
    if pattern is None:
        raise ValueError(f"A path with spans has a placeholder. Received: path={path!r}")
    with readable(path):
        places = pattern.places()
        reader = _SpanReader(pattern, places, find)
        if not places:
            raise BadInputError(
                f"No span matches {path} (in {Path.cwd()}): "
                + (
                    "{YYYY}, {MM} and {DD} stand for a date, as in 2026-01-31."
                    if pattern.is_by_date
                    else "{SPAN} stands for a number, as in data/span-1/."
                )
            )
        if pinned:
            return _pinned(reader, selection, pinned)
        if selection.newest is not None:
            return _newest(reader, selection)
        return _range(reader, selection)


def describe_spans(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the spans of a run as text, such as `8..9 (version 1), 10 (version 2)`."""
    stretches: list[tuple[int | None, list[SpanKey]]] = []
    for record in records:
        key = parse_selection(record["span"]).first
        if key is None:
            raise ValueError(f"A span has a number or a date. Received: span={record['span']!r}")
        if not stretches or stretches[-1][0] != record["version"]:
            stretches.append((record["version"], []))
        stretches[-1][1].append(key)
    return ", ".join(
        format_spans(keys) + ("" if version is None else f" (version {version})")
        for version, keys in stretches
    )


def name_spans(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the spans of a run as a part of a sentence, such as `span 8` or `spans 8..9`."""
    return f"span{'s' if len(records) > 1 else ''} {describe_spans(records)}"


class _SpanReader:
    """Finds the files of single spans."""

    def __init__(self, pattern: SpanPattern, places: Sequence[Place], find: Callable[[str], list[Path]]):
        self.pattern = pattern
        self._find = find
        self._places: dict[SpanKey, dict[int | None, list[Place]]] = {}
        for place in places:
            self._places.setdefault(place.span, {}).setdefault(place.version, []).append(place)

    @property
    def keys(self) -> list[SpanKey]:
        """Keys in ascending order, including spans without a file."""
        keys: Any = self._places  # all numbers, or all dates
        return sorted(keys)

    @property
    def names(self) -> list[tuple[SpanKey, int | None]]:
        """Spans and their versions, in ascending order."""
        return [(key, version) for key in self.keys for version in sorted(self._places[key], key=_number)]

    def read(self, key: SpanKey, notes: list[str]) -> Span | None:
        """Returns a span in its newest version that has files; None if there is none."""
        versions = self._places[key]
        _check_one_name([place for places in versions.values() for place in places], is_version=False)
        for version in sorted(versions, key=_number, reverse=True):
            files = self._files(versions[version])
            if files:
                return Span(key, version, tuple(files))
            notes.append(
                f"{_name(key, version)} has no data file{_holding(versions[version])}: it is skipped"
            )
        return None

    def read_version(self, key: SpanKey, version: int | None) -> Span | None:
        """Returns a span in this version; None if it does not exist."""
        files = self._files(self._places.get(key, {}).get(version, []))
        return Span(key, version, tuple(files)) if files else None

    def _files(self, places: Sequence[Place]) -> list[Path]:
        _check_one_name(places, is_version=True)
        files: list[Path] = []
        for place in places:
            if not place.is_complete or is_temporary(place.path.name):
                continue
            try:
                files += self._find(self.pattern.files_path(place))
            except NoCsvFileError:
                continue
        unfinished = _unfinished(places, files)
        if files and unfinished:
            raise BadInputError(
                f"{_name(places[0].span, places[0].version)} seems to be incomplete: "
                f"{unfinished[0]} is still being written. Run again when the span is complete; or remove "
                "that file, or name other spans with data.spans."
            )
        return files


def _newest(reader: _SpanReader, selection: SpanSelection) -> ResolvedSpans:
    wanted = selection.newest or 1
    spans: list[Span] = []
    notes: list[str] = []
    for key in reversed(reader.keys):
        if selection.last is not None and _is_less(selection.last, key):
            continue
        span = reader.read(key, notes)
        if span is not None:
            spans.append(span)
        if len(spans) == wanted:
            break
    if not spans:
        raise BadInputError(
            f"No span of {reader.pattern.path} has a data file: {notes[0].removesuffix(_PASSED)}."
            if notes
            else f"data.spans = {str(selection)!r}: {reader.pattern.path} has no span that old. Existing "
            f"spans: {format_spans(reader.keys)}."
        )
    if len(spans) < wanted:
        notes.append(
            f"data.spans = {str(selection)!r}: there {'is' if len(spans) == 1 else 'are'} only {len(spans)}"
        )
    return _resolved(reader, spans[::-1], notes)


def _range(reader: _SpanReader, selection: SpanSelection) -> ResolvedSpans:
    first, last = selection.first, selection.last
    if first is None or last is None:
        raise ValueError(f"A range has two ends. Received: selection={selection}")
    spans: list[Span] = []
    notes: list[str] = []
    reasons: list[str] = []
    for key in reader.keys:
        if _is_less(key, first) or _is_less(last, key):
            continue
        passed: list[str] = []
        span = reader.read(key, passed)
        if span is None:
            reasons += passed
        else:
            spans.append(span)
            notes += passed
    holes = find_holes(first, last, [span.key for span in spans])
    if holes:
        why = f" ({'; '.join(text.removesuffix(_PASSED) for text in reasons)})" if reasons else ""
        raise BadInputError(
            f"data.spans = {str(selection)!r}: there is no span {holes} of {reader.pattern.path}{why}. "
            f'Existing spans: {format_spans(reader.keys)}. Give a range without gaps, or "last N" for the '
            "newest N existing spans."
        )
    return _resolved(reader, spans, notes)


def _pinned(reader: _SpanReader, selection: SpanSelection, pinned: Sequence[SpanRecord]) -> ResolvedSpans:
    spans = []
    for record in pinned:
        key = parse_selection(record["span"]).first
        span = None if key is None else reader.read_version(key, record["version"])
        if span is None:
            raise BadInputError(
                f"--resume: the run read {_name(record['span'], record['version'])} of "
                f"{reader.pattern.path}, which no longer exists. Start a new run without --resume."
            )
        spans.append(span)
    newer = [
        _name(key, version)
        for key, version in reader.names
        if (selection.newest is not None and selection.last is None and _is_less(spans[-1].key, key))
        or any(key == span.key and _is_less(span.version, version) for span in spans)
    ]
    notes = [f"newer spans, left for the next run: {', '.join(newer)}"] if newer else []
    return _resolved(reader, spans, notes)


def _resolved(reader: _SpanReader, spans: list[Span], notes: list[str]) -> ResolvedSpans:
    owners: dict[Path, Span] = {}
    for span in spans:
        for file in span.files:
            if file in owners:
                raise BadInputError(
                    f"{_name(owners[file].key, None)} and {_name(span.key, None)} of {reader.pattern.path} "
                    f"are the same file, {file}: its rows would count twice. Remove the link."
                )
            owners[file] = span
    return ResolvedSpans(reader.pattern.path, tuple(spans), tuple(notes))


_PASSED = ": it is skipped"


def _check_one_name(places: Sequence[Place], is_version: bool) -> None:
    """Checks that a span, or a version of it, has one name: `03` and `3` are the same number."""
    names = [place.version_name if is_version else place.name for place in places]
    for other, name in zip(places, names, strict=True):
        if name != names[0]:
            which = _name(other.span, other.version if is_version else None)
            raise BadInputError(
                f"{places[0].path} and {other.path} are both {which}. Remove one of them, or set the number "
                f"of digits in data.path, as in {{{'VERSION' if is_version else 'SPAN'}:2}}."
            )


def _unfinished(places: Sequence[Place], files: Sequence[Path]) -> list[Path]:
    """Returns the files in the folders of a span that are being written."""
    unfinished = [place.path for place in places if is_temporary(place.path.name)]
    folders = {place.path for place in places if place.path.is_dir()}
    for place in tuple(folders):  # without the targets of links
        folders |= {file.parent for file in files if file.is_relative_to(place.resolve())}
    return unfinished + [
        item for folder in sorted(folders) for item in sorted(folder.iterdir()) if is_temporary(item.name)
    ]


def _holding(places: Sequence[Place]) -> str:
    """Returns, in brackets, the names that the places of a span hold instead of a CSV file."""
    names = sorted(
        name
        for place in places
        for name in (
            [item.name for item in place.path.iterdir()] if place.path.is_dir() else [place.path.name]
        )
    )
    if not names:
        return " (it is empty)"
    rest = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f" (there is {', '.join(names[:_MAX_NAMES])}{rest})"


def _name(key: SpanKey | str, version: int | None) -> str:
    return f"span {key}" if version is None else f"version {version} of span {key}"


def _number(version: int | None) -> int:
    return -1 if version is None else version


def _is_less(first: Any, second: Any) -> bool:
    """Returns whether a span or a version is before another; one without a number is before none."""
    return first is not None and second is not None and bool(first < second)
