"""Paths with placeholders for the names of the data: `{SPAN}` or a date, and `{VERSION}`."""

import datetime
import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.config.span_selection import SpanKey
from pipelines.errors import BadInputError

_DIGITS = {"YYYY": 4, "MM": 2, "DD": 2}
_NAMES = ("SPAN", "VERSION", *_DIGITS)
_PLACEHOLDER = re.compile(r"\{([A-Za-z]+)(?::([^{}]*))?\}")
_OPENED = re.compile(rf"\{{({'|'.join(_NAMES)})(?![A-Za-z])")
_TOKEN = re.compile(r"(\{(?:SPAN|VERSION|YYYY|MM|DD)(?::[^{}]*)?\}|\*+|\?|\[!?\]?[^\]]*\])")
_WILDCARDS = ("*", "?", "[")
_TEMPORARY_ENDINGS = (
    ".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".incomplete", ".inprogress",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A file or folder that fills in the placeholders."""

    span: SpanKey  # Span of the data
    version: int | None  # Version of the span; None if the pattern has no `{VERSION}`
    path: Path  # Path up to the last placeholder
    name: str  # Text in place of the span's placeholder; `03` and `3` are the same span
    version_name: str = ""  # Text in place of the version's placeholder; empty without one
    is_complete: bool = True  # False for a folder that contains nothing that matches the rest of the pattern


@dataclass(frozen=True)
class SpanPattern:
    """A path with placeholders."""

    path: str  # Path as the user wrote it
    is_by_date: bool  # True if spans are dates
    has_version: bool  # True if there is a `{VERSION}`

    def places(self) -> list[Place]:
        """Returns the existing places, in the order of their names, including temporary and empty ones."""
        return list(_walk(self._head[0], self._head[1], {}, self))

    def files_path(self, place: Place) -> str:
        """Returns the path of the files of a place: the place, followed by the rest of the pattern."""
        tail = self._parts[self._last + 1 :]
        folder = str(place.path)
        if any(glob.has_magic(part) for part in tail):
            folder = glob.escape(folder)
        return os.path.join(folder, *tail)

    def span_key(self, values: Mapping[str, str], path: Path) -> SpanKey:
        if not self.is_by_date:
            return int(values["SPAN"])
        try:
            return datetime.date(*(int(values[name]) for name in _DIGITS))
        except ValueError as error:
            text = "-".join(values[name] for name in _DIGITS)
            raise BadInputError(
                f"{path}: {text} is not a date ({error}), but data.path = {self.path!r} reads it as one: "
                "rename it, or move it elsewhere."
            ) from error

    def names_span(self, values: Mapping[str, str]) -> bool:
        """Returns True if the values are enough for a span."""
        return set(_DIGITS if self.is_by_date else ("SPAN",)) <= set(values)

    @property
    def _parts(self) -> tuple[str, ...]:
        return Path(self.path).parts

    @property
    def _last(self) -> int:
        """Index of the last part with a placeholder."""
        return max(index for index, part in enumerate(self._parts) if has_placeholder(part))

    @property
    def _head(self) -> tuple[Path, tuple[str, ...]]:
        parts = self._parts[: self._last + 1]
        return (Path(parts[0]), parts[1:]) if Path(self.path).is_absolute() else (Path(), parts)


def has_placeholder(text: str) -> bool:
    return any(match[1] in _NAMES for match in _PLACEHOLDER.finditer(text))


def as_glob(path: str) -> str:
    """Returns a path with `*` in place of its placeholders."""
    return re.sub(r"\*+", "*", _PLACEHOLDER.sub(lambda match: "*" if match[1] in _NAMES else match[0], path))


def before_placeholder(path: str) -> str:
    """Returns the part of a path before its first placeholder; the whole path without one."""
    starts = (match.start() for match in _PLACEHOLDER.finditer(path) if match[1] in _NAMES)
    return path[: next(starts, len(path))]


def parse_span_pattern(path: str) -> SpanPattern | None:
    """Returns the pattern in a path; None if it has no placeholder.

    `{SPAN}` and `{VERSION}` stand for numbers, `{SPAN:4}` for one of four digits; `{YYYY}`, `{MM}` and
    `{DD}` for a date. A placeholder may occur several times, always with the same value. `*`, `?` and `[...]`
    work as in a glob pattern.

    Source: the patterns of TFX's ExampleGen. There, a placeholder occurs only once, and a name in place of
    `{SPAN}` that is not a number is an error; here it is ignored.
    """
    widths: dict[str, str | None] = {}
    for match in _PLACEHOLDER.finditer(path):
        name, width = match[1], match[2]
        if name.upper() not in _NAMES:
            continue
        if name not in _NAMES:
            raise ValueError(f"{match[0]} is not a placeholder: write {{{name.upper()}}}")
        if width is not None and (name in _DIGITS or not re.fullmatch("[0-9]{1,2}", width)):
            raise ValueError(
                f"{match[0]}: "
                + (
                    f"{{{name}}} always has {_DIGITS[name]} digits; leave out the width"
                    if name in _DIGITS
                    else f"a width is a number of digits, as in {{{name}:4}}"
                )
            )
        if width is not None and not int(width):
            raise ValueError(f"{match[0]}: a width is at least 1")
        if widths.setdefault(name, width) != width:
            raise ValueError(f"{{{name}}} has two different widths")
    if opened := _OPENED.search(_PLACEHOLDER.sub("", path)):
        raise ValueError(f"{opened[0]} is not closed: write {{{opened[1]}}}")
    if not widths:
        return None
    dates = [name for name in _DIGITS if name in widths]
    if "SPAN" in widths and dates:
        raise ValueError(f"{{SPAN}} and {{{dates[0]}}} both name the span; keep {{SPAN}}, or the date")
    if dates and len(dates) < len(_DIGITS):
        missing = next(name for name in _DIGITS if name not in widths)
        raise ValueError(
            f"a date needs {{YYYY}}, {{MM}} and {{DD}}; there is no {{{missing}}}. To read a month of days "
            'set data.spans, such as "2026-01-01..2026-01-31"'
        )
    if "VERSION" in widths and "SPAN" not in widths and not dates:
        raise ValueError("{VERSION} belongs to a span: add {SPAN}, or {YYYY}, {MM} and {DD}")
    if re.search(r"\{(SPAN|VERSION)\}\{(SPAN|VERSION)[:}]", path):
        raise ValueError(
            "two placeholders follow each other; put something between them, or give the first a width, as "
            "in {SPAN:4}"
        )
    return SpanPattern(path, bool(dates), "VERSION" in widths)


def is_temporary(name: str) -> bool:
    """Returns True if a name is, by convention, that of a file or folder that is being written."""
    lower = name.lower()
    return (
        lower.endswith(_TEMPORARY_ENDINGS)
        or lower == "_temporary"
        or (lower.startswith(".") and ".csv" in lower and not lower.endswith(".crc"))
    )


def _walk(
    folder: Path, parts: tuple[str, ...], values: dict[str, str], pattern: SpanPattern
) -> Iterator[Place]:
    """Yields the places below a folder that match parts of a path."""
    if not parts:
        yield _place(folder, values, pattern)
        return
    part, rest = parts[0], parts[1:]
    num_found = 0
    for name, new_values in _matches(folder, part, values):
        for place in _walk(folder / name, rest, {**values, **new_values}, pattern):
            num_found += 1
            yield place
    if not num_found and pattern.names_span(values) and folder.is_dir():
        yield _place(folder, values, pattern, is_complete=False)


def _place(path: Path, values: dict[str, str], pattern: SpanPattern, is_complete: bool = True) -> Place:
    version = values.get("VERSION", "")
    name = "-".join(values[key] for key in (_DIGITS if pattern.is_by_date else ("SPAN",)))
    return Place(
        pattern.span_key(values, path), int(version) if version else None, path, name, version, is_complete
    )


def _matches(folder: Path, part: str, values: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the names in a folder that match a part of the path, with the values of their placeholders."""
    if not has_placeholder(part) and (folder / part).exists():
        yield part, {}
        return
    if not folder.is_dir():
        return
    expression = re.compile(_expression(part, values), re.DOTALL)
    for name in sorted(os.listdir(folder)):
        if name.startswith(".") and not part.startswith("."):
            continue
        match = expression.fullmatch(name)
        if match is not None:
            yield name, match.groupdict()


def _expression(part: str, values: Mapping[str, str]) -> str:
    """Returns a part of a pattern as a regular expression."""
    tokens = [token for token in _TOKEN.split(part) if token]
    expression = ""
    named = set(values)
    for index, token in enumerate(tokens):
        placeholder = _PLACEHOLDER.fullmatch(token)
        name = placeholder[1] if placeholder else ""
        if name in values:
            expression += re.escape(values[name])
        elif name in named:
            expression += f"(?P={name})"
        elif placeholder and name in _NAMES:
            named.add(name)
            digits = _DIGITS.get(name) or int(placeholder[2] or 0)
            group = f"(?P<{name}>[0-9]{{{digits}}})" if digits else f"(?P<{name}>[0-9]{{1,18}})"
            # A wildcard next to a number of any length must not take digits of it.
            if not digits and index and tokens[index - 1].startswith(_WILDCARDS):
                group = f"(?<![0-9]){group}"
            if not digits and index + 1 < len(tokens) and tokens[index + 1].startswith(_WILDCARDS):
                group = f"{group}(?![0-9])"
            expression += group
        elif token.startswith("*"):
            expression += ".*"
        elif token == "?":
            expression += "."
        elif token.startswith("[") and token.endswith("]"):
            expression += fnmatch.translate(token)[len("(?s:") : -len(r")\Z")]
        else:
            expression += re.escape(token)
    return expression
