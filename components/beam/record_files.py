"""Files of records (TFRecord with gzip) whose bytes depend on the records alone."""

import contextlib
import gzip
import io
import os
import shutil
import struct
import tempfile
import uuid
from collections.abc import Iterable, Iterator

import tensorflow as tf
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from tfx.dsl.io import fileio

from components.file_systems import remove_tree

_UNFINISHED = ".unfinished"
# TensorFlow's default is 6. Taxi trips, microseconds and bytes a row: level 0 0.8 and 521, 1 1.5 and 56,
# 3 1.7 and 53, 6 3.8 and 45. With less repetition, 3 is slower by more; reading takes the same time.
_COMPRESSION_LEVEL = 1
_CHUNK_BYTES = 1 << 20
_CHECKSUM_BYTES = 4
_HEADER = struct.Struct(f"<Q{_CHECKSUM_BYTES}x")  # number of bytes, checksum of that number


def numbered(prefix: str, index: int, count: int) -> str:
    """Returns the path of one of several files, as Beam names them: `prefix-00000-of-00002.gz`."""
    return f"{prefix}-{index:05d}-of-{count:05d}.gz"


def write_records(path: str, records: Iterable[bytes]) -> None:
    """Writes a gzipped TFRecord file that appears under its name only when it is complete.

    Beam may do the same work twice, at the same time or after a worker was lost. Each attempt writes
    its own file, in a folder next to that of `path`, and then renames it: the last attempt wins.

    The file has one gzip member, because TensorFlow may overlook further ones. Its folder exists.
    """
    unfinished = unfinished_path(path)
    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "records")
        options = tf.io.TFRecordOptions("GZIP", compression_level=_COMPRESSION_LEVEL)
        with tf.io.TFRecordWriter(local, options) as writer:
            for record in records:
                writer.write(record)
        with (
            open(local, "rb") as source,
            FileSystems.create(
                unfinished, "application/octet-stream", CompressionTypes.UNCOMPRESSED
            ) as target,
        ):
            shutil.copyfileobj(source, target, _CHUNK_BYTES)
    FileSystems.rename([unfinished], [path])


def unfinished_folder(split_folder: str) -> str:
    """Returns the folder of the files that `write_records` has not finished; no split reads it."""
    return os.path.join(os.path.dirname(split_folder), _UNFINISHED)


def unfinished_path(path: str) -> str:
    """Returns a path that no other file has, for work on a file in `ARTIFACT/Split-NAME/`."""
    return os.path.join(unfinished_folder(os.path.dirname(path)), uuid.uuid4().hex)


def remove_unfinished(split_folders: Iterable[str]) -> None:
    """Removes the files that lost attempts of `write_records` have left."""
    for folder in {unfinished_folder(folder) for folder in split_folders}:
        if fileio.exists(folder):
            remove_tree(folder)


def read_records(path: str) -> Iterator[bytes]:
    """Yields the records of a TFRecord file in their order; it is gzipped if its name ends in `.gz`.

    gzip's checksum is verified, those of TFRecord are not.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED))
        if path.endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile(fileobj=file))
        file = io.BufferedReader(file, _CHUNK_BYTES)
        while header := file.read(_HEADER.size):
            if len(header) < _HEADER.size:
                raise EOFError(f"{path} ends in the middle of a record's header")
            (num_bytes,) = _HEADER.unpack(header)
            record = file.read(num_bytes)
            if len(record) < num_bytes or len(file.read(_CHECKSUM_BYTES)) < _CHECKSUM_BYTES:
                raise EOFError(f"{path} ends in the middle of a record of {num_bytes} bytes")
            yield record
