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


def parts_in(folder: Path, fold: int) -> tuple[list[str], list[str]]:
    """Returns the file patterns of the rows to learn from, and of those that judge.

    Args:
        folder: Folder that `divide` has written.
        fold: Number of the part that judges, from 0.
    """
    patterns = [str(folder / str(part) / "*") for part in range(ONE_IN)]
    judges = patterns.pop(fold)
    return patterns, [judges]


def divide(patterns: Iterable[str], folder: Path) -> None:
    """Copies training examples into as many folders as there are folds at most, row by row.

    The evaluation split stays unseen, so that the Evaluator's verdict is about rows that had no part in the
    choice of the values. The same files give the same division.

    Args:
        patterns: File patterns of TFRecord files, compressed with GZIP where a name ends in `.gz`.
        folder: Folder to write to; a division that is there already is kept.

    Raises:
        SettingError: There are too few rows.
    """
    if folder.is_dir():
        return
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    paths = sorted(path for pattern in patterns for path in tf.io.gfile.glob(pattern))
    num_rows = 0
    for index, path in enumerate(paths):
        num_rows = _divide_file(path, partial, index, num_rows)
    if num_rows < ONE_IN:
        raise SettingError(
            f"{num_rows} training rows are too few to hold out one in {ONE_IN} for the Tuner; more rows "
            "are needed, or no search."
        )
    partial.rename(folder)


def _divide_file(path: str, folder: Path, index: int, num_rows: int) -> int:
    """Divides a file, and returns the number of rows so far."""
    compression = "GZIP" if path.endswith(".gz") else ""
    name = f"{index:05d}-{os.path.basename(path)}"
    writers = []
    for part in range(ONE_IN):
        (folder / str(part)).mkdir(parents=True, exist_ok=True)
        writers.append(tf.io.TFRecordWriter(str(folder / str(part) / name), compression))
    records = tf.data.TFRecordDataset(path, compression).batch(_BATCH)
    for batch in records.as_numpy_iterator():
        for record in batch:
            writers[num_rows % ONE_IN].write(record)
            num_rows += 1
    for writer in writers:
        writer.close()
    return num_rows
