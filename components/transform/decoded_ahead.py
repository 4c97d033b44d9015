"""Decodes tf.Examples while the pipeline that reads them is made, and once for all of its steps."""

import itertools
import logging
import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa
from tfx_bsl.coders import example_coder

from components.beam.ahead import map_ahead
from components.beam.example_batches import batches

_LOGGER = logging.getLogger(__name__)

MAX_FILE_BYTES = 32 << 20
"""Size of all files, in bytes, above which decoding ahead is not worth its memory; a taxi trip has 56."""

MAX_BYTES = 128 << 20
"""Size of the record batches that are kept, in bytes."""


class DecodedAhead:
    """The first record batches of some files, decoded by threads.

    Analysis and transformation both read the files to analyze. They are decoded while tf.Transform traces and
    saves graphs, which keeps one processor busy. The readers decode what exceeds `max_bytes`.
    """

    def __init__(self, schema: bytes, paths: Sequence[str], max_bytes: int = MAX_BYTES) -> None:
        self._schema = schema
        self._files = {path: _File() for path in paths}
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._decode_files, name="decode ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the threads, and forgets the batches."""
        self._is_closed = True
        self._thread.join()
        self._files.clear()

    def read(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yields the first batches of a file; waits for those that are not decoded yet."""
        file = self._files.get(path, _NO_FILE)
        for number in itertools.count():
            with self._changed:
                while number == len(file.batches):
                    if file.has_ended:
                        return
                    self._changed.wait()
            yield file.batches[number]

    def is_whole(self, path: str) -> bool:
        """Returns True if `read` has yielded all batches of a file."""
        return self._files.get(path, _NO_FILE).is_whole

    def _decode_files(self) -> None:
        try:
            self._decode_until_full()
        except Exception:  # the reader meets it again, and Beam then says in which step
            _LOGGER.debug("Cannot decode all files ahead.", exc_info=True)
        finally:
            with self._changed:
                for file in self._files.values():
                    file.has_ended = True
                self._changed.notify_all()

    def _decode_until_full(self) -> None:
        bytes_left = self._max_bytes
        for path, file in self._files.items():
            for batch in map_ahead(self._decode, batches(path)):
                bytes_left -= batch.nbytes
                if bytes_left < 0 or self._is_closed:
                    return
                with self._changed:
                    file.batches.append(batch)
                    self._changed.notify_all()
            with self._changed:
                file.has_ended = file.is_whole = True
                self._changed.notify_all()

    def _decode(self, examples: list[bytes]) -> pa.RecordBatch:
        return example_coder.ExamplesToRecordBatchDecoder(self._schema).DecodeBatch(examples)


class _File:
    def __init__(self, has_ended: bool = False) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.has_ended = has_ended
        self.is_whole = False


_NO_FILE = _File(has_ended=True)
