"""Divides the training examples into rows to learn from and rows that judge the trials."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from components.errors import SettingError
from components.tuner.settings import MAX_FOLDS

ONE_IN = MAX_FOLDS
"""Number of training rows of which one judges the trials."""

_BATCH = 1_024


def fold_files(folder: Path, fold: int) -> tuple[list[str], list[str]]:
    """Returns the file patterns of the rows to learn from, and of the held-out rows."""
    patterns = [str(folder / str(part) / "*") for part in range(ONE_IN)]
    judges = patterns.pop(fold)
    return patterns, [judges]


def divide(patterns: Iterable[str], folder: Path, group: str | None = None) -> None:
    """Copies training examples into as many folders as there can be folds.

    The evaluation split stays unseen, so that the Evaluator's verdict is about rows that had no part in
    the choice of the values. The same files give the same division, and an existing division is kept.
    Rows with the same value of the feature `group` are in the same folder. Rows without a value, or
    with -1, are divided row by row.
    """
    if folder.is_dir():
        return
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    paths = sorted(path for pattern in patterns for path in tf.io.gfile.glob(pattern))
    part_of = _Parts(group)
    for index, path in enumerate(paths):
        _divide_file(path, partial, index, part_of)
    part_of.check()
    partial.rename(folder)


class _Parts:
    """Deals rows, or groups of them, to the parts in turn."""

    def __init__(self, group: str | None):
        self._group = group
        self._num_parts_dealt = 0
        self._part_of_group: dict[bytes, int] = {}

    def __call__(self, record: bytes) -> int:
        value = None if self._group is None else _group_value(record, self._group)
        if value is None:
            return self._deal()
        if value not in self._part_of_group:
            self._part_of_group[value] = self._deal()
        return self._part_of_group[value]

    def _deal(self) -> int:
        self._num_parts_dealt += 1
        return (self._num_parts_dealt - 1) % ONE_IN

    def check(self) -> None:
        """Checks that each part has rows, and that the groups exist."""
        if self._group is not None and not self._part_of_group:
            raise SettingError(
                f"tuner.group = {self._group!r}: no transformed training row has such a feature; let "
                "preprocessing_fn return it."
            )
        if self._num_parts_dealt < ONE_IN:
            what = f"groups of {self._group!r}" if self._group else "training rows"
            raise SettingError(
                f"{self._num_parts_dealt} {what} are too few to hold out one in {ONE_IN} for the Tuner. Add "
                "more, or leave out the search."
            )


def _group_value(record: bytes, group: str) -> bytes | None:
    feature = tf.train.Example.FromString(record).features.feature.get(group)
    if feature is None or not (
        feature.int64_list.value or feature.bytes_list.value or feature.float_list.value
    ):
        return None
    if list(feature.int64_list.value) == [-1]:
        return None
    value: bytes = feature.SerializeToString(deterministic=True)
    return value


def _divide_file(path: str, folder: Path, index: int, part_of: _Parts) -> None:
    compression = "GZIP" if path.endswith(".gz") else ""
    name = f"{index:05d}-{os.path.basename(path)}"
    writers = []
    for part in range(ONE_IN):
        (folder / str(part)).mkdir(parents=True, exist_ok=True)
        writers.append(tf.io.TFRecordWriter(str(folder / str(part) / name), compression))
    records = tf.data.TFRecordDataset(path, compression).batch(_BATCH)
    for batch in records.as_numpy_iterator():
        for record in batch:
            writers[part_of(record)].write(record)
    for writer in writers:
        writer.close()
