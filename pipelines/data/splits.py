"""Divides the rows into those that train, evaluate and test, according to `[split]`."""

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.config.data import SplitConfig
from pipelines.config.toml import columns_entry
from pipelines.data.column_cells import ColumnCells
from pipelines.data.files import NoCsvFileError, find_csv_files
from pipelines.data.formats.arrow_reading import read_numbers, read_times
from pipelines.data.kinds import ColumnKind, to_date_format
from pipelines.data.profile import CsvProfile
from pipelines.errors import BadInputError, counted


@dataclass(frozen=True)
class Splits:
    """Division of the rows."""

    by: str = "row"
    column: str | None = None
    names: tuple[str, ...] = ("train", "eval")  # in the order of time
    split_of: Mapping[Path, str] = field(default_factory=dict)  # Split of each file, for `files`
    # First value of each split after the first, for `time`: seconds since 1970, or the column's number.
    cutoffs: tuple[float, ...] = ()
    kind: ColumnKind | None = None  # Kind of the column, for `time`
    note: str = ""  # Note for the user, or empty

    @property
    def needs_copies(self) -> bool:
        """True if each split needs separate files."""
        return self.by in ("time", "files")

    @property
    def identity(self) -> str:
        """Text that distinguishes it from other splits of the same files; empty when rows are drawn."""
        if self.by == "files":
            return f"files {sorted((split, file.name) for file, split in self.split_of.items())}"
        return f"time {self.column} {self.cutoffs}" if self.by == "time" else ""

    def positions(self, cells: Any) -> Any:
        """Returns the position in `names` of each row's split, by the rows' cells in the column of time."""
        if self.kind is None:
            raise ValueError(f"Rows are divided by time only with its kind. Received: by={self.by}")
        order = _in_order(cells, self.kind)  # NaN is not beyond any cutoff
        return sum((order >= cutoff).astype(np.int64) for cutoff in self.cutoffs)


ROW_BY_ROW = Splits()
"""CsvExampleGen draws rows."""


def find_split_files(path: str, split: SplitConfig) -> dict[str, list[Path]]:
    folder = Path(path)
    if not folder.is_dir():
        error = BadInputError if folder.exists() or glob.has_magic(path) else NoCsvFileError
        raise error(
            f'split.by = "files" needs a folder as data.path, in which split.train and split.eval '
            f"are looked for. Received: data.path = {path!r}."
        )
    patterns = {name: str(getattr(split, name)) for name in split.names}
    files = {
        name: find_csv_files(os.path.join(glob.escape(path) if glob.has_magic(pattern) else path, pattern))
        for name, pattern in patterns.items()
    }
    for one, other in combinations(patterns, 2):
        if shared := sorted({*files[one]} & {*files[other]}):
            raise BadInputError(
                f"split.{one} = {patterns[one]!r} and split.{other} = {patterns[other]!r} both match "
                f"{shared[0]}. A file can only be in one of them."
            )
    return files


def plan_splits(
    split: SplitConfig,
    profile: CsvProfile,
    kinds: Mapping[str, ColumnKind],
    split_of: Mapping[Path, str] | None = None,
    label: str | None = None,
    drops_unlabelled: bool = False,
) -> Splits:
    """Returns the division of the rows.

    `drops_unlabelled`: True if rows without a label are left out.
    """
    column = split.column
    if column is not None and column not in profile.columns:
        raise BadInputError(
            f"split.column = {column!r}: there is no such column. Columns: {', '.join(profile.columns)}."
        )
    if column is not None and column == label:
        raise BadInputError(
            f"split.column = {column!r}: it is the label, and a model would be evaluated on labels that it "
            "has not seen. Give another column, or leave [split] out."
        )
    if split.by == "files":
        return Splits("files", names=split.names, split_of=split_of or {})
    if column is None:
        return Splits(names=split.names)
    num_distinct, num_missing = (profile.columns[column].num_distinct, profile.columns[column].num_missing)
    if split.by == "column":
        if num_distinct is not None and num_distinct < 2:
            raise BadInputError(
                f"split.column = {column!r}: it has {counted(num_distinct, 'different value')}; at least two "
                "are needed to divide the rows, and preferably a hundred."
            )
        are = "is" if num_missing == 1 else "are"
        note = f"{counted(num_missing, 'row')} without a {column!r} {are} divided row by row"
        return Splits("column", column, split.names, note=note if num_missing else "")
    needs_label = drops_unlabelled and label is not None and profile.columns[label].num_missing > 0
    return _by_time(split, profile, column, kinds[column], label if needs_label else None)


def _by_time(
    split: SplitConfig, profile: CsvProfile, column: str, kind: ColumnKind, label: str | None
) -> Splits:
    """Divides by time; with a label, the rows that have one."""
    is_number = profile.columns[column].is_numeric or kind.number_format is not None
    if to_date_format(kind) is None and not is_number:
        raise BadInputError(
            f"split.column = {column!r}: the column is read as {kind.name}, which has no order. If it holds "
            f"dates, set {columns_entry(column, 'date')}{'; ' + kind.doubt if kind.doubt else ''}."
        )
    cells = ColumnCells(profile, column)
    pairs = cells.chunks() if label is None else cells.chunks_with(label)
    chunks = [(_in_order(values, kind), counts) for values, counts in pairs]
    order = np.concatenate([np.empty(0), *(values for values, _ in chunks)])
    counts = np.concatenate([np.empty(0), *(counts for _, counts in chunks)])
    is_known = np.isfinite(order)
    order, counts = order[is_known], counts[is_known]
    times, same = np.unique(order, return_inverse=True)
    if times.size < 2:
        raise BadInputError(f"split.column = {column!r}: all rows have the same time, so none are newer.")
    if times.size < len(split.names):
        raise BadInputError(
            f"split.column = {column!r}: it has {counted(times.size, 'different time')}, too few for "
            f"{len(split.names)} splits. Leave split.test out, or divide by another column."
        )
    ends = np.cumsum(np.bincount(same, counts))  # number of rows up to each time
    firsts = [0]
    for number, share in enumerate(accumulate(split.shares[:-1]), 1):
        # Each split has at least one time, even if another time alone has more than its share.
        latest = times.size - len(split.names) + number
        first = int(np.searchsorted(ends, float(share) * ends[-1], side="right"))
        firsts.append(min(max(first, firsts[-1] + 1), latest))
    num_rows = profile.num_rows if label is None else profile.columns[label].num_values
    num_untimed = num_rows - int(ends[-1])
    sizes = np.diff([0, *(ends[first - 1] for first in firsts[1:]), ends[-1]]).astype(int)
    sizes[0] += num_untimed
    parts = [
        f"{size} {'row' if size == 1 else 'rows'} from {_shown(times[first], kind)} on "
        f"{verb}{'s' if size == 1 else ''}"
        for verb, size, first in zip(("evaluate", "test"), sizes[1:], firsts[1:], strict=False)
    ]
    note = ", ".join([*parts[::-1], f"{sizes[0]} {'trains' if sizes[0] == 1 else 'train'}"])
    if num_untimed:
        note += f" ({num_untimed} of them without a time)"
    cutoffs = tuple(float(times[first]) for first in firsts[1:])
    return Splits("time", column, split.names, cutoffs=cutoffs, kind=kind, note=note)


def _in_order(cells: Any, kind: ColumnKind) -> Any:
    """Returns float64 values that grow with time; NaN where a cell is not a time."""
    date_format = to_date_format(kind)
    if date_format is not None:
        times = read_times(cells, date_format)
        return np.where(times.is_valid, times.utc_secs.astype(np.float64), np.nan)
    return read_numbers(cells, kind.number_format)


def _shown(cutoff: float, kind: ColumnKind) -> str:
    if kind.date_format is None:
        return f"{cutoff:g}"
    return str(np.datetime64(int(cutoff), "s")).replace("T", " ")
