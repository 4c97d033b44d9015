"""Writes rows into files that are the same on every engine, however the rows are distributed over workers."""

import hashlib
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from components.beam import record_files
from components.beam.compression import Compressed, compress, decompress
from components.example_gen.example_encoder import feature_bytes, serialize, value_bytes

_NUM_THREADS = 2


class WriteRows(beam.PTransform):
    """Divides rows among splits and files by their contents alone, and writes them as tf.Examples.

    The elements are record batches, see `serialize`. Each copy of a row has a digest of the serialized row
    and the number of the copy. The digest determines the split (unless the value of a column does) and the
    order of the rows in a file. The digest of the first copy determines the file. So neither the order of the
    rows nor their distribution over workers matters.

    Each split has all of the files, even those without rows.

    Args:
        prefixes: Path prefixes of the files, for each split.
        bounds: Hash buckets below each split's end; the last one is their number.
        column: Column whose equal values are in one split; empty to split row by row.
        num_files: Number of files of each split. The rows of two files, in all splits, must fit into memory.

    Example:
        batches | WriteRows(["out/Split-train/data", "out/Split-eval/data"], [2, 3], "", num_files=4)
    """

    def __init__(
        self, prefixes: Sequence[str], bounds: Sequence[int], column: str, num_files: int
    ) -> None:
        super().__init__()
        self._prefixes = list(prefixes)
        self._bounds = list(bounds)
        self._column = column
        self._num_files = num_files

    def expand(self, batches: beam.PCollection) -> beam.PCollection:
        """Returns the number of each file, after it was written."""
        files = (
            batches.pipeline
            | "Files" >> beam.Create(list(range(self._num_files)), reshuffle=False)
            | "NoRows" >> beam.Map(_no_rows).with_output_types(tuple[int, Compressed])
        )
        chunks = batches | "Divide" >> beam.FlatMap(_divide, self._num_files).with_output_types(
            tuple[int, Compressed]
        )
        write = partial(
            _write,
            prefixes=self._prefixes,
            bounds=self._bounds,
            column=self._column,
            num_files=self._num_files,
        )
        return (
            (files, chunks)
            | beam.Flatten()
            | "ByFile" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_InThreads(write)).with_output_types(int)
        )


def _no_rows(number: int) -> tuple[int, Compressed]:
    return number, compress(None)


def _divide(batch: Any, num_files: int) -> Iterator[tuple[int, Compressed]]:
    """Yields the rows of each file; a file has one range of digests."""
    if num_files == 1:
        yield 0, _packed(batch)
        return
    firsts = b"".join(hashlib.sha256(row).digest()[:8] for row in serialize(batch))
    numbers = _scaled(np.frombuffer(firsts, ">u8").astype(np.uint64), num_files)
    order = np.argsort(numbers, kind="stable")
    bounds: Any = np.searchsorted(numbers[order], np.arange(num_files + 1))
    batch = batch.take(pa.array(order))
    for number, (begin, end) in enumerate(itertools.pairwise(bounds)):
        if begin < end:
            yield number, _packed(batch.slice(begin, end - begin))


def _packed(batch: Any) -> Compressed:
    content = pa.BufferOutputStream()
    with pa.ipc.new_stream(content, batch.schema) as writer:
        writer.write_batch(batch)
    return compress(content.getvalue())


def _scaled(numbers: Any, count: int) -> Any:
    """Returns `numbers * count >> 64` for 64-bit numbers; the count has 32 bits at most."""
    low, half, factor = np.uint64(2**32 - 1), np.uint64(32), np.uint64(count)
    return ((numbers >> half) * factor + ((numbers & low) * factor >> half)) >> half


class _InThreads(beam.DoFn):
    """Calls a function with each number of a file and its chunks, for two files at a time."""

    def __init__(self, function: Callable[[int, list[Compressed]], int]) -> None:
        self._function = function

    def start_bundle(self) -> None:
        self._threads = ThreadPoolExecutor(_NUM_THREADS)
        self._running: deque[Future[int]] = deque()

    def process(self, file: tuple[int, Iterable[Compressed]]) -> Iterator[int]:
        if len(self._running) == _NUM_THREADS:
            yield self._running.popleft().result()
        number, chunks = file
        # Read here: an engine may fetch the chunks only now, and is not asked to by several threads.
        self._running.append(self._threads.submit(self._function, number, list(chunks)))

    def finish_bundle(self) -> Iterator[Any]:
        for running in self._running:
            yield GlobalWindows.windowed_value_at_end_of_window(running.result())
        self._threads.shutdown()


def _write(
    number: int,
    chunks: Iterable[Compressed],
    prefixes: list[str],
    bounds: list[int],
    column: str,
    num_files: int,
) -> int:
    """Writes the same file of each split, and returns its number."""
    counts: Counter[bytes] = Counter()
    groups: dict[bytes, int | None] = {}
    for batch in _batches(chunks):
        if not column:
            counts.update(serialize(batch))
            continue
        in_splits = _splits_by_column(batch, column, bounds)
        for row, split in zip(serialize(batch), in_splits, strict=True):
            counts[row] += 1
            groups[row] = split
    rows, digests = _copies(counts)
    splits = _splits_of(digests, bounds)
    for place, row in enumerate(rows if groups else ()):
        if (split := groups[row]) is not None:
            splits[place] = split
    order = np.argsort(digests)
    for index, prefix in enumerate(prefixes):
        path = record_files.numbered(prefix, number, num_files)
        record_files.write_records(path, (rows[place] for place in order[splits[order] == index]))
    return number


def _batches(chunks: Iterable[Compressed]) -> Iterator[Any]:
    tables = [
        pa.ipc.open_stream(content).read_all()
        for content in map(decompress, chunks)
        if content is not None
    ]
    if tables:
        yield from pa.concat_tables(tables).combine_chunks().to_batches()


def _copies(counts: Counter[bytes]) -> tuple[list[bytes], Any]:
    """Returns each copy of each row, and the digests (NumPy, 32 bytes each)."""
    rows, digests = [], []
    for row, count in counts.items():
        first = hashlib.sha256(row)
        rows.append(row)
        digests.append(first.digest())
        for number in range(1, count):
            copy = first.copy()
            copy.update(b"copy %d" % number)
            rows.append(row)
            digests.append(copy.digest())
    return rows, np.frombuffer(b"".join(digests), "S32")


def _splits_of(digests: Any, bounds: list[int]) -> Any:
    """Returns the index of the split of each digest, by its hash bucket."""
    remainder: Any = np.zeros(len(digests), np.uint64)
    for word in digests.view(">u4").reshape(len(digests), 8).T.astype(np.uint64):
        remainder = ((remainder << np.uint64(32)) + word) % np.uint64(bounds[-1])
    return np.searchsorted(np.array(bounds, np.uint64), remainder, side="right")


def _splits_by_column(batch: Any, name: str, bounds: list[int]) -> Iterator[int | None]:
    """Yields the index of the split of each row by its value in a column; None if it has none.

    Raises:
      ValueError: There is no such column.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if name not in columns:
        raise ValueError(
            f"There is no column to split by. Received: partition_feature_name={name!r}. "
            f"Columns: {', '.join(sorted(columns))}"
        )
    splits: dict[bytes, int] = {}
    for value in value_bytes(columns[name]).to_pylist():
        if value and pa.types.is_binary(columns[name].type):
            value = value.strip()  # white space around a value makes no other group of it
        if not value:
            yield None
            continue
        if value not in splits:
            digest = hashlib.sha256(feature_bytes(columns[name].type, value)).digest()
            splits[value] = int(_splits_of(np.frombuffer(digest, "S32"), bounds)[0])
        yield splits[value]
