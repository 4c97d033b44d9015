"""Whole checkpoints: those whose index can be read and whose data files are all there, to the last byte.

A process that is killed, or a disk that is full, may leave others.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import numpy as np
import tensorflow as tf

Files = tuple[tuple[str, int, int], ...]
"""Name, bytes and time of change of each file of a checkpoint."""

_PARTIAL = "sufficient slices"  # in TensorFlow's message for a tensor that was saved in part
_ERRORS = (tf.errors.OpError, IndexError, RuntimeError, ValueError)  # of TensorFlow's readers


def files_of(path: str) -> Files:
    """Returns the files of the checkpoint at `path`, by name."""
    folder, name = os.path.split(path)
    pattern = re.compile(rf"{re.escape(name)}(\.index|\.data-\d+-of-\d+|-\d{{5}}-of-\d{{5}})?")
    try:
        names = sorted(filter(pattern.fullmatch, tf.io.gfile.listdir(folder or ".")))
        stats = [tf.io.gfile.stat(os.path.join(folder, each)) for each in names]
    except tf.errors.NotFoundError:  # the folder, or a training beside has just deleted a file
        return ()
    return tuple(
        (each, stat.length, stat.mtime_nsec) for each, stat in zip(names, stats, strict=True)
    )


def why_not_whole(path: str) -> str | None:
    """Returns what is wrong with the checkpoint at `path`, which names the file; None when it is whole.

    It compares sizes. What the files hold is not read, but the index and strings.
    """
    return _why_not_whole(path, files_of(path))


@functools.lru_cache(maxsize=64)
def _why_not_whole(path: str, files: Files) -> str | None:
    name = os.path.basename(path)
    sizes = {each.removeprefix(name): length for each, length, _ in files}
    if ".index" not in sizes:  # those of the format of TensorFlow 0.12 have none
        is_old = any(not each.startswith(".data") for each in sizes)
        return None if is_old else f"{path}.index is missing"
    # A checkpoint that was saved once more from another number of parameter servers has two sets of them.
    counts = sorted({each.rpartition("-")[2] for each in sizes if each.startswith(".data")})
    sets = [
        [f".data-{shard:05d}-of-{count}" for shard in range(int(count))]
        for count in counts or ["00001"]
    ]
    complete = [shards for shards in sets if sizes.keys() >= set(shards)]
    if not complete:
        missing = next(each for each in sets[0] if each not in sizes)
        return f"{path}{missing} is missing"
    try:
        reader = tf.train.load_checkpoint(path)
    except _ERRORS as error:
        return f"{path}.index can't be read ({error})"
    try:
        found = max(sum(sizes[each] for each in shards) for shards in complete)
        if found < _bytes_needed(reader):  # its size alone breaks none
            _read_all(reader)
    except _ERRORS as error:
        return f"{path}.data-* can't be read, with {found} bytes ({error})"
    return None


def _read_all(reader: Any) -> None:
    """Reads all tensors, except those of which only some slices were saved, such as slots of a partition.

    Raises:
        tf.errors.OpError: A tensor can't be read.
    """
    for tensor in reader.get_variable_to_shape_map():
        try:
            reader.get_tensor(tensor)
        except _ERRORS as error:
            if _PARTIAL not in str(error):
                raise


def _bytes_needed(reader: Any) -> int:
    """Returns how many bytes the tensors of a checkpoint take in its data files."""
    dtypes = reader.get_variable_to_dtype_map()
    total = 0
    for name, shape in reader.get_variable_to_shape_map().items():
        if dtypes[name] == tf.string:
            lengths = [len(each) for each in np.ravel(reader.get_tensor(name))]
            # Their lengths, seven bits in a byte, and the checksum of these come first.
            total += 4 + sum(length + max(1, -(-length.bit_length() // 7)) for length in lengths)
        else:
            total += int(np.prod(shape, dtype=np.int64)) * dtypes[name].size
    return total
