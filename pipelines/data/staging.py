"""The files that ExampleGen reads: the user's own, or a cleaned copy if they need it."""

import contextlib
import csv
import hashlib
import itertools
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from components.example_gen.file_names import split_name
from pipelines import atomic_files
from pipelines.data.cells import any_field_size
from pipelines.data.file_states import FileState
from pipelines.data.missing import is_missing
from pipelines.data.opening import open_text
from pipelines.data.profile import UNNAMED, CsvProfile
from pipelines.data.splits import ROW_BY_ROW, Splits
from pipelines.errors import counted

PATTERN_MARKS = "*?["
"""Characters in a path that TFX reads as a pattern."""

_DATE_MARKS = ("{YYYY}", "{MM}", "{DD}", "{SPAN", "{VERSION")
_ROWS_AT_A_TIME = 10_000

Row = list[str]


@dataclass(frozen=True)
class StagedData:
    """A folder and a pattern for ExampleGen."""

    folder: Path
    pattern: str
    reasons: tuple[str, ...]  # Reasons for a copy; empty when these are the user's own files
    # Patterns by split if the files are divided already; then `pattern` is unused.
    splits: tuple[tuple[str, str], ...] = ()
    # SHA-256 of each file in hexadecimal digits, by its path relative to the folder.
    files: dict[str, str] = field(default_factory=dict)


def stage(
    profile: CsvProfile, required_label: str | None, folder: Path, splits: Splits = ROW_BY_ROW
) -> StagedData:
    """Returns files that ExampleGen can read; writes a copy to `folder` only if necessary.

    `required_label`: label column; rows without a value in it are left out. None keeps all rows.
    `splits`: division of the rows. Default: ExampleGen divides them row by row.
    """
    reasons = _reasons(profile, required_label, splits)
    if not reasons:
        first = profile.files[0]
        pattern = first.name if len(profile.files) == 1 else f"*{split_name(first.name)[1]}"
        digests = {file.name: profile.states[file].sha256 for file in profile.files}
        return StagedData(first.parent, pattern, (), files=digests)
    # The content of a copy depends on all of these.
    identity = " ".join(filter(None, (profile.fingerprint, str(required_label), splits.identity)))
    target = folder / hashlib.sha256(identity.encode()).hexdigest()[:16]
    names = splits.names if splits.needs_copies else ()
    if not target.exists():
        partial = atomic_files.partial_path(target)
        shutil.rmtree(partial, ignore_errors=True)
        for subfolder in names or (".",):
            (partial / subfolder).mkdir(parents=True)
        for index, file in enumerate(profile.files):
            _copy(profile, file, partial, f"data-{index:05d}.csv", required_label, splits)
        profile.check_unchanged()
        partial.rename(target)
    copies = {
        file.relative_to(target).as_posix(): FileState.read(file).sha256
        for file in sorted(target.rglob("*.csv"))
    }
    patterns = tuple((name, f"{name}/*.csv") for name in names)
    return StagedData(target, "*.csv", reasons, patterns, copies)


def _reasons(profile: CsvProfile, required_label: str | None, splits: Splits) -> tuple[str, ...]:
    reasons = []
    if required_label is not None and profile.columns[required_label].num_missing:
        count = profile.columns[required_label].num_missing
        rows, are = ("row", "is") if count == 1 else ("rows", "are")
        reasons.append(f"{count} {rows} without a value in {required_label!r} {are} left out")
    if profile.has_byte_order_mark:
        reasons.append("the byte order mark is removed")
    if profile.num_set_aside:
        reasons.append(
            f"{counted(profile.num_set_aside, 'row')} that cannot be read "
            f"{'is' if profile.num_set_aside == 1 else 'are'} left out"
        )
    elif profile.originals:
        reasons.append("the text is written in UTF-8")
    if profile.has_unnamed_column:
        reasons.append(f"the column without a name is called {UNNAMED!r}")
    if not profile.dialect.is_plain:
        reasons.append("fields are separated by commas and quoted by double quotes")
    elif not profile.has_plain_header:
        reasons.append("the header is written without quotes and white space")
    is_single = len(profile.files) == 1
    path = str(profile.files[0] if is_single else profile.files[0].parent)
    if profile.has_irregular_quotes:
        reasons.append("fields with quotes in them are put in quotes")
    if any(mark in path for mark in (*PATTERN_MARKS, *_DATE_MARKS)):
        name = str(profile.user_files[0] if is_single else profile.user_files[0].parent)
        reasons.append(f"the name {name!r} would be read as a pattern")
    if splits.by == "time":
        reasons.append(f"the rows are divided by time ({splits.column!r})")
    elif splits.by == "files":
        reasons.append("the files of each split are gathered in one folder")
    elif not is_single:
        folders = {file.parent for file in profile.files}
        pattern = f"*{split_name(profile.files[0].name)[1]}"
        if len(folders) > 1 or set(profile.files) != set(profile.files[0].parent.glob(pattern)):
            reasons.append("the files are gathered in one folder")
    return tuple(reasons)


def _copy(
    profile: CsvProfile, source: Path, folder: Path, name: str, required_label: str | None, splits: Splits
) -> None:
    """Writes a file, or the part of it for each split."""
    header = list(profile.columns)
    position = None if required_label is None else header.index(required_label)
    with open_text(source) as reader, any_field_size():
        dialect = profile.dialect
        rows: Iterator[Row] = (row for row in dialect.reader(reader, source) if row)
        next(rows)
        kept = (row for row in rows if position is None or not is_missing(row[position].strip()))
        if splits.by == "time":
            _write_parts(kept, header, folder, name, splits)
        else:
            with _started(folder / splits.split_of.get(source, "") / name, header) as stream:
                _write_rows(stream, kept)


def _write_parts(rows: Iterator[Row], header: list[str], folder: Path, name: str, splits: Splits) -> None:
    column = header.index(splits.column or "")
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(_started(folder / split / name, header)) for split in splits.names]
        while part := list(itertools.islice(rows, _ROWS_AT_A_TIME)):
            cells = pa.array([row[column].strip() for row in part], pa.string())
            positions = splits.positions(cells)
            for position, stream in enumerate(streams):
                _write_rows(stream, itertools.compress(part, positions == position))


def _write_rows(stream: TextIO, rows: Iterable[Row]) -> None:
    """Writes rows; Python before 3.13 would leave a carriage return outside of quotes."""
    plain = csv.writer(stream, lineterminator="\n")
    quoted = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        (quoted if any("\r" in cell for cell in row) else plain).writerow(row)


def _started(file: Path, header: list[str]) -> TextIO:
    stream = file.open("w", encoding="utf-8", newline="")
    stream.write(",".join(header) + "\n")
    return stream
