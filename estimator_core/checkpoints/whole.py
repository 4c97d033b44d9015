"""Whole checkpoints: the index can be read and all data files are there, to the last byte.

A killed process or a full disk may leave broken ones.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1

Files = tuple[tuple[str, int, int], ...]
"""Name, size in bytes and modification time of each file of a checkpoint."""

_PARTIAL = "sufficient slices"  # in TensorFlow's message for a tensor that was saved in part
_ERRORS = (tf.errors.OpError, IndexError, RuntimeError, ValueError)  # of TensorFlow's readers


def open_checkpoint(path: str) -> Any:
    """Returns TensorFlow's reader of the checkpoint at `path`, on any of its file systems."""
    # tf.train.load_checkpoint first asks whether the path is a directory. On ram:// it is: there, any string
    # that a file's path begins with is one.
    return tf1.train.NewCheckpointReader(os.fspath(path))


def checkpoint_files(path: str) -> Files:
    """Returns the files of the checkpoint at `path`, by name."""
    folder, name = os.path.split(path)
    pattern = re.compile(rf"{re.escape(name)}(\.index|\.data-\d+-of-\d+|-\d{{5}}-of-\d{{5}})?")
    try:
        names = sorted(filter(pattern.fullmatch, tf.io.gfile.listdir(folder or ".")))
        return tuple((name, *size_and_time(os.path.join(folder, name))) for name in names)
    except tf.errors.NotFoundError:  # no folder, or a concurrent training has just deleted a file
        return ()


def size_and_time(path: str) -> tuple[int, int]:
    """Returns the bytes of a file, and when it was written, in nanoseconds; 0 if that is not known."""
    stat = tf.io.gfile.stat(path)
    # TensorFlow rounds the times of local files to seconds, in which two checkpoints can be written.
    with contextlib.suppress(OSError):
        return stat.length, os.stat(path).st_mtime_ns
    return stat.length, stat.mtime_nsec


def why_not_whole(path: str) -> str | None:
    """Returns the defect of the checkpoint at `path`, naming the file; None when it is whole.

    Compares sizes. Of the contents, only the index and string tensors are read.
    """
    return _why_not_whole(path, checkpoint_files(path))


@functools.lru_cache(maxsize=64)
def _why_not_whole(path: str, files: Files) -> str | None:
    name = os.path.basename(path)
    sizes = {file.removeprefix(name): length for file, length, _ in files}
    if ".index" not in sizes:  # checkpoints in the format of TensorFlow 0.12 have none
        is_old = any(not file.startswith(".data") for file in sizes)
        return None if is_old else f"{path}.index is missing"
    # A checkpoint saved again with another number of parameter servers has two sets of data files.
    counts = sorted({file.rpartition("-")[2] for file in sizes if file.startswith(".data")})
    sets = [[f".data-{shard:05d}-of-{count}" for shard in range(int(count))] for count in counts or ["00001"]]
    complete = [shards for shards in sets if sizes.keys() >= set(shards)]
    if not complete:
        missing = next(file for file in sets[0] if file not in sizes)
        return f"{path}{missing} is missing"
    try:
        reader = open_checkpoint(path)
    except _ERRORS as error:
        return f"{path}.index can't be read ({error})"
    try:
        num_bytes = max(sum(sizes[file] for file in shards) for shards in complete)
        if num_bytes < _bytes_needed(reader):  # a smaller size alone may be fine
            for tensor in reader.get_variable_to_shape_map():
                try:
                    reader.get_tensor(tensor)
                except _ERRORS as error:
                    # Of some tensors, such as slots of a partition, only slices were saved.
                    if _PARTIAL not in str(error):
                        raise
    except _ERRORS as error:
        return f"{path}.data-* can't be read, with {num_bytes} bytes ({error})"
    return None


def _bytes_needed(reader: Any) -> int:
    """Returns the size in bytes of a checkpoint's tensors in its data files."""
    dtypes = reader.get_variable_to_dtype_map()
    total = 0
    for name, shape in reader.get_variable_to_shape_map().items():
        if dtypes[name] == tf.string:
            lengths = [len(value) for value in np.ravel(reader.get_tensor(name))]
            # The strings come after their lengths, seven bits in a byte, and a checksum of the lengths.
            total += 4 + sum(length + max(1, -(-length.bit_length() // 7)) for length in lengths)
        else:
            total += int(np.prod(shape, dtype=np.int64)) * dtypes[name].size
    return total
