"""Divides the training examples into rows to learn from and rows that judge the trials."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

ONE_IN = 5
"""Number of training rows of which one judges the trials."""

_BATCH = 1_024


def divide(patterns: Iterable[str], folder: Path) -> tuple[list[str], list[str]]:
    """Copies training examples into two folders, and returns the file patterns of each.

    The evaluation split stays unseen, so that the Evaluator's verdict is about rows that had no part in the
    choice of the values. The same files give the same division.

    Args:
        patterns: File patterns of TFRecord files, compressed with GZIP where a name ends in `.gz`.
        folder: Folder to write to; a division that is there already is kept.

    Raises:
        ValueError: There are too few rows.
    """
    if not folder.is_dir():
        partial = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        paths = sorted(path for pattern in patterns for path in tf.io.gfile.glob(pattern))
        counts = [0, 0]
        for index, path in enumerate(paths):
            _divide_file(path, partial, index, counts)
        if not all(counts):
            raise ValueError(
                f"{sum(counts)} training rows are too few to hold out one in {ONE_IN} for the Tuner"
            )
        partial.rename(folder)
    return [str(folder / _PARTS[0] / "*")], [str(folder / _PARTS[1] / "*")]


def _divide_file(path: str, folder: Path, index: int, counts: list[int]) -> None:
    compression = "GZIP" if path.endswith(".gz") else ""
    name = f"{index:05d}-{os.path.basename(path)}"
    writers = []
    for part in _PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
        writers.append(tf.io.TFRecordWriter(str(folder / part / name), compression))
    records = tf.data.TFRecordDataset(path, compression).batch(_BATCH)
    for batch in records.as_numpy_iterator():
        for record in batch:
            judges = int(sum(counts) % ONE_IN == ONE_IN - 1)
            writers[judges].write(record)
            counts[judges] += 1
    for writer in writers:
        writer.close()


_PARTS = ("learn", "judge")
