"""Writes rows into files that are the same on every engine, however the rows are distributed over workers."""

import bisect
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
import tensorflow as tf
from apache_beam.transforms.window import GlobalWindows

from components.beam import record_files
from components.beam.compression import Compressed, compress, decompress

_CHUNK_BYTES = 16 << 20


class WriteRows(beam.PTransform):
    """Divides serialized tf.Examples among splits and files by their contents alone, and writes them.

    Each copy of a row has a digest of the row and the number of the copy. The digest determines the split
    (unless the value of a column does) and the order of the rows in a file. The digest of the first copy
    determines the file. So neither the order of the rows nor their distribution over workers matters.

    Each split has all of the files, even those without rows.

    Args:
        prefixes: Path prefixes of the files, for each split.
        bounds: Hash buckets below each split's end; the last one is their number.
        column: Column whose equal values are in one split; empty to split row by row.
        num_files: Number of files of each split. The rows of one file, in all splits, must fit into memory.

    Example:
        rows | WriteRows(["out/Split-train/data", "out/Split-eval/data"], [2, 3], "", num_files=4)
    """

    def __init__(
        self, prefixes: Sequence[str], bounds: Sequence[int], column: str, num_files: int
    ) -> None:
        super().__init__()
        self._prefixes = list(prefixes)
        self._bounds = list(bounds)
        self._column = column
        self._num_files = num_files

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Returns the number of each file, after it was written."""
        numbers = list(range(self._num_files))
        files = (
            rows.pipeline
            | "Files" >> beam.Create(numbers, reshuffle=False)
            | "NoRows" >> beam.Map(_no_rows).with_output_types(tuple[int, Compressed])
        )
        chunks = rows | "Compress" >> beam.ParDo(_CompressRows(self._num_files)).with_output_types(
            tuple[int, Compressed]
        )
        return (
            (files, chunks)
            | beam.Flatten()
            | "ByFile" >> beam.GroupByKey()
            | "Write"
            >> beam.Map(_write, self._prefixes, self._bounds, self._column, self._num_files)
        )


def _no_rows(number: int) -> tuple[int, Compressed]:
    return number, compress({})


class _CompressRows(beam.DoFn):
    """Serialized rows -> (number of a file, some of its rows): few elements, and small ones."""

    def __init__(self, num_files: int) -> None:
        self._num_files = num_files

    def start_bundle(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._num_bytes = 0

    def process(self, row: bytes) -> Iterator[tuple[int, Compressed]]:
        count = self._counts.get(row, 0)
        self._counts[row] = count + 1
        if not count:
            self._num_bytes += len(row)
            if self._num_bytes >= _CHUNK_BYTES:
                yield from self._chunks()

    def finish_bundle(self) -> Iterator[object]:
        for chunk in self._chunks():
            yield GlobalWindows.windowed_value_at_end_of_window(chunk)

    def _chunks(self) -> Iterator[tuple[int, Compressed]]:
        files: dict[int, dict[bytes, int]] = {}
        for row, count in self._counts.items():
            files.setdefault(_file_of(row, self._num_files), {})[row] = count
        self.start_bundle()
        for number, counts in files.items():
            yield number, compress(counts)


def _file_of(row: bytes, num_files: int) -> int:
    """Returns the number of the file of a row; a file has one range of digests."""
    if num_files == 1:
        return 0
    return int.from_bytes(hashlib.sha256(row).digest()[:8], "big") * num_files >> 64


def _write(
    file: tuple[int, Iterable[Compressed]],
    prefixes: list[str],
    bounds: list[int],
    column: str,
    num_files: int,
) -> int:
    """Writes the same file of each split, and returns its number."""
    number, chunks = file
    counts: Counter[bytes] = Counter()
    for chunk in chunks:
        for row, count in decompress(chunk).items():
            counts[row] += count
    splits: list[list[tuple[bytes, bytes]]] = [[] for _ in prefixes]
    while counts:
        row, count = counts.popitem()
        for split, digest in _copies(row, count, bounds, column):
            splits[split].append((digest, row))
    for prefix, rows in zip(prefixes, splits, strict=True):
        rows.sort()
        path = record_files.numbered(prefix, number, num_files)
        record_files.write_records(path, (row for _, row in rows))
    return number


def _copies(row: bytes, count: int, bounds: list[int], column: str) -> Iterator[tuple[int, bytes]]:
    """Yields the index of the split and the digest of each copy of a row."""
    group = _group(row, column) if column else b""
    split = _split_of(hashlib.sha256(group).digest(), bounds) if group else None
    first = hashlib.sha256(row)
    for number in range(count):
        copy = first
        if number:
            copy = first.copy()
            copy.update(b"copy %d" % number)
        digest = copy.digest()
        yield _split_of(digest, bounds) if split is None else split, digest


def _split_of(digest: bytes, bounds: list[int]) -> int:
    """Returns the index of the split of a digest, by its hash bucket."""
    return bisect.bisect(bounds, int.from_bytes(digest, "big") % bounds[-1])


def _group(row: bytes, column: str) -> bytes:
    """Returns the serialized value of a row's column; empty if it has none.

    Raises:
      ValueError: There is no such column.
    """
    features = tf.train.Example.FromString(row).features.feature
    if column not in features:
        raise ValueError(
            f"There is no column to split by. Received: partition_feature_name={column!r}. "
            f"Columns: {', '.join(sorted(features))}"
        )
    feature = features[column]
    kind = feature.WhichOneof("kind")
    if kind is None or not getattr(feature, kind).value:
        return b""
    if kind == "bytes_list":  # white space around a value makes no other group of it
        feature.bytes_list.value[0] = feature.bytes_list.value[0].strip()
        if not feature.bytes_list.value[0]:
            return b""
    return bytes(feature.SerializeToString(deterministic=True))
