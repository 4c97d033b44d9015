"""Writes rows into files that are the same on every engine, however the rows are distributed over workers."""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindows

from components.beam import record_files
from components.beam.compression import Compressed, compress, decompress
from components.beam.in_threads import InThreads
from components.example_gen.example_encoder import feature_bytes, serialize, value_bytes

GroupColumn = tuple[str, Collection[str]]
Spilled = tuple[str, list[tuple[int, int, int]]]
"""Path of a file of spilled rows; the first byte of each part, its size, and its size when unpacked."""


class WriteRows(beam.PTransform):
    """Divides rows among splits and files by their contents alone, and writes them as tf.Examples.

    The elements are record batches, see `serialize`. Each copy of a row has a digest of the serialized row
    and the number of the copy. The digest determines the split (unless the value of a column does) and the
    order of the rows in a file. The digest of the first copy determines the file. Neither the order of the
    rows nor their distribution over workers matters.

    Rows on the way to their file lie in files themselves, next to the splits: Beam gets only their places.
    `record_files.remove_unfinished` removes these files when the pipeline has ended.

    Each split has all of the files, even those without rows.

    `bounds`: hash buckets below each split's end; the last one is their number.
    `column`: column whose equal values are in one split, and texts in it whose rows are split row by row;
    an empty name splits all rows so.
    `num_files`: number of files of each split. The rows of two files, in all splits, must fit into memory.
    """

    def __init__(
        self, prefixes: Sequence[str], bounds: Sequence[int], column: GroupColumn, num_files: int
    ) -> None:
        super().__init__()
        self._prefixes = list(prefixes)
        self._bounds = list(bounds)
        self._column = column
        self._num_files = num_files

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        files = (
            batches.pipeline
            | "Files" >> beam.Create(list(range(self._num_files)), reshuffle=False)
            | "NoRows" >> beam.Map(lambda number: (number, ("", []))).with_output_types(tuple[int, Spilled])
        )
        spill = _Spill(self._prefixes[0], self._bounds, self._column, self._num_files)
        write = _Write(self._prefixes, self._bounds, self._num_files)
        return (
            (files, batches | "Spill" >> beam.ParDo(spill).with_output_types(tuple[int, Spilled]))
            | beam.Flatten()
            | "ByFile" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(write).with_output_types(int)
        )


class _Spill(InThreads):
    """Writes the rows of a bundle into one file, divided by the files that they belong to."""

    def __init__(self, prefix: str, bounds: list[int], column: GroupColumn, num_files: int) -> None:
        self._prefix = prefix
        self._settings = bounds, column, num_files

    def start_bundle(self) -> None:
        super().start_bundle()
        self._path = record_files.unfinished_path(self._prefix)
        self._stream = FileSystems.create(
            self._path, "application/octet-stream", CompressionTypes.UNCOMPRESSED
        )
        self._size = 0
        self._parts: dict[int, list[tuple[int, int, int]]] = defaultdict(list)

    def process(self, batch: Any) -> None:
        for parts in self.submit(_divide, batch, *self._settings):
            self._append(parts)

    def finish_bundle(self) -> Iterator[Any]:
        for parts in self.finish():
            self._append(parts)
        self._stream.close()
        pa.default_memory_pool().release_unused()  # the files are sorted next, in memory of NumPy
        for number, places in self._parts.items():
            yield GlobalWindows.windowed_value_at_end_of_window((number, (self._path, places)))

    def _append(self, parts: list[tuple[int, Compressed]]) -> None:
        for number, (num_bytes, content) in parts:
            self._stream.write(content)
            self._parts[number].append((self._size, len(content), num_bytes))
            self._size += len(content)


@dataclass(frozen=True)
class _Part:
    """Some of the different rows of a file."""

    digests: Any  # SHA-256 of each row (NumPy)
    counts: Any  # Number of copies of each row
    groups: Any  # Index of the split of each row by the value of a column; -1 where its digest decides
    sizes: Any  # Bytes of each row
    rows: bytes  # Serialized rows, one after the other


def _divide(
    batch: Any, bounds: list[int], column: GroupColumn, num_files: int
) -> list[tuple[int, Compressed]]:
    """Returns the rows of each file, in several parts; a file covers one range of digests."""
    groups = _splits_by_column(batch, *column, bounds) if column[0] else np.full(len(batch), -1)
    parts: list[tuple[int, Compressed]] = []
    begin = 0
    for rows in serialize(batch):
        parts += _divide_rows(rows, groups[begin : begin + len(rows)], num_files)
        begin += len(rows)
    return parts


def _divide_rows(rows: Any, groups: Any, num_files: int) -> Iterator[tuple[int, Compressed]]:
    sizes, content = _sizes_and_bytes(rows)
    ends: list[int] = np.append(0, np.cumsum(sizes)).tolist()
    digests = _digests(content[start:end] for start, end in itertools.pairwise(ends))
    digests, places, counts = np.unique(digests, return_index=True, return_counts=True)
    sizes, content = _sizes_and_bytes(rows.take(pa.array(places)))
    numbers = _scaled(digests.view(">u8")[::4].astype(np.uint64), num_files)
    ends = np.append(0, np.cumsum(sizes)).tolist()
    bounds: Any = np.searchsorted(numbers, np.arange(num_files + 1))
    for number, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
        if begin < end:
            part = _Part(
                digests[begin:end],
                counts[begin:end],
                groups[places[begin:end]],
                sizes[begin:end],
                content[ends[begin] : ends[end]],
            )
            yield number, compress(part)


def _sizes_and_bytes(rows: Any) -> tuple[Any, bytes]:
    """Returns the sizes of the elements of a pyarrow binary array without nulls, and their bytes."""
    _, offsets, content = rows.buffers()
    ends = np.frombuffer(offsets, np.int32)[: len(rows) + 1]
    return np.diff(ends), content.to_pybytes() if content else b""


def _digests(rows: Iterable[bytes]) -> Any:
    return np.frombuffer(b"".join(hashlib.sha256(row).digest() for row in rows), "S32")


def _scaled(numbers: Any, count: int) -> Any:
    """Returns `numbers * count >> 64` for 64-bit numbers; the count has 32 bits at most."""
    low, half, factor = np.uint64(2**32 - 1), np.uint64(32), np.uint64(count)
    return ((numbers >> half) * factor + ((numbers & low) * factor >> half)) >> half


class _Write(InThreads):
    """Writes the same file of each split, and returns its number."""

    def __init__(self, prefixes: list[str], bounds: list[int], num_files: int) -> None:
        self._settings = prefixes, bounds, num_files

    def process(self, file: tuple[int, Iterable[Spilled]]) -> Iterator[int]:
        number, spilled = file
        # Read here: an engine may fetch the places only now, and is not asked to by several threads.
        yield from self.submit(_write, number, list(spilled), *self._settings)


def _write(
    number: int, spilled: list[Spilled], prefixes: list[str], bounds: list[int], num_files: int
) -> int:
    rows = _Rows([part for part_of_bundle in spilled for part in _parts(*part_of_bundle)])
    places, splits = rows.in_order(bounds)
    for index, prefix in enumerate(prefixes):
        path = record_files.numbered(prefix, number, num_files)
        record_files.write_records(path, rows.at(places[splits == index]))
    return number


def _parts(path: str, places: list[tuple[int, int, int]]) -> Iterator[_Part]:
    if not places:
        return
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        for begin, size, num_bytes in places:
            stream.seek(begin)
            yield decompress((num_bytes, stream.read(size)))


class _Rows:
    """The rows of a file, in any order; two parts may have equal rows."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts
        self._part_of: Any = np.repeat(np.arange(len(parts)), [len(part.sizes) for part in parts])
        self._ends = _joined([np.cumsum(part.sizes) for part in parts], np.int64)
        self._starts = self._ends - _joined([part.sizes for part in parts], np.int64)

    def at(self, places: Any) -> Iterator[bytes]:
        columns = (self._part_of, self._starts, self._ends)
        for part, start, end in zip(*(column[places].tolist() for column in columns), strict=True):
            yield self._parts[part].rows[start:end]

    def in_order(self, bounds: list[int]) -> tuple[Any, Any]:
        """Returns the position of each copy of each row, in the order of their digests, and its split."""
        digests, places, same = np.unique(
            _joined([part.digests for part in self._parts], "S32"), return_index=True, return_inverse=True
        )
        counts = np.bincount(same, _joined([part.counts for part in self._parts], np.int64))
        counts = counts.astype(np.int64)
        several = counts > 1
        copies = (
            row + b"copy %d" % number
            for row, count in zip(self.at(places[several]), counts[several], strict=True)
            for number in range(1, count)
        )
        digests = np.concatenate([digests, _digests(copies)])
        places = np.concatenate([places, places[several].repeat(counts[several] - 1)])
        groups = _joined([part.groups for part in self._parts], np.int64)[places]
        splits = np.where(groups < 0, _assign_splits(digests, bounds), groups)
        order = np.argsort(digests)
        return places[order], splits[order]


def _joined(arrays: list[Any], dtype: Any) -> Any:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _assign_splits(digests: Any, bounds: list[int]) -> Any:
    """Returns the index of the split of each digest, according to its hash bucket."""
    remainder: Any = np.zeros(len(digests), np.uint64)
    for word in digests.view(">u4").reshape(len(digests), 8).T.astype(np.uint64):
        remainder = ((remainder << np.uint64(32)) + word) % np.uint64(bounds[-1])
    return np.searchsorted(np.array(bounds, np.uint64), remainder, side="right")


def _splits_by_column(batch: Any, name: str, no_groups: Collection[str], bounds: list[int]) -> Any:
    """Returns the index of the split of each row by its value in a column; -1 for rows without a value."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if name not in columns:
        raise ValueError(
            f"There is no column to split by. Received: partition_feature_name={name!r}. "
            f"Columns: {', '.join(sorted(columns))}"
        )
    column_type = columns[name].type
    values = value_bytes(columns[name]).dictionary_encode("encode")
    splits = []
    for value in values.dictionary.to_pylist():
        if value and pa.types.is_binary(column_type):
            value = value.strip()  # white space around a value makes no other group of it
            value = b"" if value.decode(errors="replace") in no_groups else value
        if not value:
            splits.append(-1)
            continue
        digest = hashlib.sha256(feature_bytes(column_type, value)).digest()
        splits.append(int(_assign_splits(np.frombuffer(digest, "S32"), bounds)[0]))
    return np.array(splits, np.int64)[values.indices.to_numpy()]
