"""The files that ExampleGen reads: the user's own, or a cleaned copy where they need it."""

import csv
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pipelines.data.profile import MISSING_TOKENS, UNNAMED, CsvProfile

PATTERN_MARKS = "*?["
"""In a path, TFX takes them for a pattern."""

_DATE_MARKS = ("{YYYY}", "{MM}", "{DD}", "{SPAN", "{VERSION")


@dataclass(frozen=True)
class StagedData:
    """A folder and a pattern for ExampleGen.

    Attributes:
      folder: Absolute path.
      pattern: Of the files in it.
      reasons: Why it is a copy; empty when these are the user's own files.
    """

    folder: Path
    pattern: str
    reasons: tuple[str, ...]


def stage(profile: CsvProfile, required_label: str | None, folder: Path) -> StagedData:
    """Returns what ExampleGen can read, writing a copy to `folder` only where it must.

    Args:
      profile: Of the user's files.
      required_label: Rows without a value in this column are left out; None keeps all.
      folder: Where a copy goes; it holds the copies of one root, by fingerprint.
    """
    reasons = _reasons(profile, required_label)
    if not reasons:
        first = profile.files[0]
        pattern = first.name if len(profile.files) == 1 else "*.csv"
        return StagedData(first.parent, pattern, ())
    identity = f"{profile.fingerprint} {required_label}"  # what a copy holds depends on both
    target = folder / hashlib.sha256(identity.encode()).hexdigest()[:16]
    if not target.exists():
        partial = folder / f".{target.name}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for index, file in enumerate(profile.files):
            target_file = partial / f"data-{index:05d}.csv"
            _copy(file, target_file, list(profile.columns), required_label)
        partial.rename(target)
    return StagedData(target, "*.csv", reasons)


def _reasons(profile: CsvProfile, required_label: str | None) -> tuple[str, ...]:
    reasons = []
    if required_label is not None and profile.columns[required_label].num_missing:
        count = profile.columns[required_label].num_missing
        reasons.append(f"{count} rows without a value in {required_label!r} are left out")
    if profile.has_byte_order_mark:
        reasons.append("the byte order mark is removed")
    if profile.has_unnamed_column:
        reasons.append(f"the column without a name is called {UNNAMED!r}")
    if not profile.has_plain_header:
        reasons.append("the header is written without quotes and white space")
    is_single = len(profile.files) == 1
    path = str(profile.files[0] if is_single else profile.files[0].parent)
    if profile.has_irregular_quotes:
        reasons.append("fields with quotes in them are put in quotes")
    if any(mark in path for mark in (*PATTERN_MARKS, *_DATE_MARKS)):
        reasons.append(f"the name {path!r} would be read as a pattern")
    if not is_single:
        folders = {file.parent for file in profile.files}
        if len(folders) > 1 or set(profile.files) != set(profile.files[0].parent.glob("*.csv")):
            reasons.append("the files are gathered in one folder")
    return tuple(reasons)


def _copy(source: Path, target: Path, names: list[str], required_label: str | None) -> None:
    with (
        source.open(encoding="utf-8-sig", newline="") as reader,
        target.open("w", encoding="utf-8", newline="") as writer,
    ):
        rows = (row for row in csv.reader(reader) if row)
        out = csv.writer(writer, lineterminator="\n")
        next(rows)
        writer.write(",".join(names) + "\n")
        position = None if required_label is None else names.index(required_label)
        out.writerows(
            row for row in rows if position is None or row[position].strip() not in MISSING_TOKENS
        )
