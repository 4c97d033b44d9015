"""Divides the rows into those that train and those that evaluate, according to `[split]`."""

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
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

TRAIN_SHARE = 2 / 3
"""Share of the rows."""


@dataclass(frozen=True)
class Splits:
    """Division of the rows."""

    by: str = "row"
    column: str | None = None
    eval_files: frozenset[Path] = frozenset()
    # First value that evaluates, for `time`: seconds since 1970, or the column's number.
    cutoff: float | None = None
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
            return f"files {sorted(file.name for file in self.eval_files)}"
        return f"time {self.column} {self.cutoff}" if self.by == "time" else ""

    def is_late(self, cells: Any) -> Any:
        """Returns a mask of the rows that evaluate, by their cells in the column of time."""
        if self.kind is None or self.cutoff is None:
            raise ValueError(f"Rows are divided by time only with a cutoff. Received: by={self.by}")
        return _in_order(cells, self.kind) >= self.cutoff


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
    files = {
        name: find_csv_files(os.path.join(glob.escape(path) if glob.has_magic(pattern) else path, pattern))
        for name, pattern in (("train", split.train or ""), ("eval", split.eval or ""))
    }
    shared = sorted(set(files["train"]) & set(files["eval"]))
    if shared:
        raise BadInputError(
            f"split.train = {split.train!r} and split.eval = {split.eval!r} both match {shared[0]}. A file "
            "can only be in one of them."
        )
    return files


def plan_splits(
    split: SplitConfig,
    profile: CsvProfile,
    kinds: Mapping[str, ColumnKind],
    eval_files: frozenset[Path] = frozenset(),
    label: str | None = None,
) -> Splits:
    """Returns the division of the rows."""
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
        return Splits("files", eval_files=eval_files)
    if column is None:
        return Splits()
    num_distinct, num_missing = (profile.columns[column].num_distinct, profile.columns[column].num_missing)
    if split.by == "column":
        if num_distinct is not None and num_distinct < 2:
            raise BadInputError(
                f"split.column = {column!r}: it has {counted(num_distinct, 'different value')}; at least two "
                "are needed to divide the rows, and preferably a hundred."
            )
        are = "is" if num_missing == 1 else "are"
        note = f"{counted(num_missing, 'row')} without a {column!r} {are} divided row by row"
        return Splits("column", column, note=note if num_missing else "")
    return _by_time(profile, column, kinds[column])


def _by_time(profile: CsvProfile, column: str, kind: ColumnKind) -> Splits:
    is_number = profile.columns[column].is_numeric or kind.number_format is not None
    if to_date_format(kind) is None and not is_number:
        raise BadInputError(
            f"split.column = {column!r}: the column is read as {kind.name}, which has no order. If it holds "
            f"dates, set {columns_entry(column, 'date')}{'; ' + kind.doubt if kind.doubt else ''}."
        )
    chunks = [(_in_order(values, kind), counts) for values, counts in ColumnCells(profile, column).chunks()]
    order = np.concatenate([values for values, _ in chunks])
    counts = np.concatenate([counts for _, counts in chunks])
    is_known = np.isfinite(order)
    order, counts = order[is_known], counts[is_known]
    if np.unique(order).size < 2:
        raise BadInputError(f"split.column = {column!r}: all rows have the same time, so none are newer.")
    sorting = np.argsort(order, kind="stable")
    order, num_up_to = order[sorting], np.cumsum(counts[sorting])
    cutoff = order[np.searchsorted(num_up_to, TRAIN_SHARE * num_up_to[-1], side="right")]
    if cutoff == order[0]:  # the first value has more than its share
        cutoff = order[order > cutoff][0]
    num_eval = int(counts[sorting][order >= cutoff].sum())
    num_untimed = profile.num_rows - int(num_up_to[-1])
    evaluate = "row from {} on evaluates" if num_eval == 1 else "rows from {} on evaluate"
    num_train = profile.num_rows - num_eval
    train = "trains" if num_train == 1 else "train"
    note = f"{num_eval} {evaluate.format(_shown(cutoff, kind))}, {num_train} {train}"
    if num_untimed:
        note += f" ({num_untimed} of them without a time)"
    return Splits("time", column, cutoff=float(cutoff), kind=kind, note=note)


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
