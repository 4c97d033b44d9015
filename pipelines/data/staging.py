"""The files that ExampleGen reads: the user's own, or a cleaned copy where they need it."""

import csv
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pipelines.data.profile import MISSING_TOKENS, UNNAMED, CsvProfile


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
    target = folder / profile.fingerprint[:16]
    if not target.exists():
        partial = folder / f".{target.name}.{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for index, file in enumerate(profile.files):
            _copy(file, partial / f"data-{index:05d}.csv", required_label)
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
    names = [file.name for file in profile.files]
    if len(profile.files) == 1:
        if any(mark in names[0] for mark in "*?[]"):
            reasons.append(f"the name {names[0]!r} would be read as a pattern")
    else:
        folders = {file.parent for file in profile.files}
        if len(folders) > 1 or set(profile.files) != set(profile.files[0].parent.glob("*.csv")):
            reasons.append("the files are gathered in one folder")
    return tuple(reasons)


def _copy(source: Path, target: Path, required_label: str | None) -> None:
    with (
        source.open(encoding="utf-8-sig", newline="") as reader,
        target.open("w", encoding="utf-8", newline="") as writer,
    ):
        rows = (row for row in csv.reader(reader) if row)
        out = csv.writer(writer, lineterminator="\n")
        header = [name or UNNAMED for name in next(rows)]
        out.writerow(header)
        position = None if required_label is None else header.index(required_label)
        out.writerows(
            row for row in rows if position is None or row[position].strip() not in MISSING_TOKENS
        )
