"""Keeps the terminal for this program: the output and logs of libraries go to a file."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OutputCapture:
    """Points the file descriptors 1 and 2 and all loggers to a file.

    C++ libraries and worker processes write to the descriptors, Python to its streams and loggers:
    all of it goes to the file. At first that is a temporary one, so that a refused run leaves
    nothing behind; `move_output` switches to the run's own. Code that writes to the terminal
    duplicates the descriptors before.
    """

    def __init__(self) -> None:
        self._saved = [os.dup(1), os.dup(2)]
        self._file = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115 - closed by `close`
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        self._handler = logging.StreamHandler(self._stream)
        self._handler.setFormatter(logging.Formatter(_FORMAT))
        self._level = logging.getLogger().level
        self._redirect(self._file.fileno())
        logging.getLogger().addHandler(self._handler)
        logging.getLogger().setLevel(logging.INFO)
        logging.captureWarnings(True)

    def move_output(self, log: Path) -> None:
        """Moves the captured output to a file, and continues there."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self._flush()
        with log.open("ab", buffering=0) as file:
            self._file.seek(0)
            file.write(self._file.read())
            self._redirect(file.fileno())

    def close(self) -> None:
        """Restores the descriptors and loggers."""
        self._flush()
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger().setLevel(self._level)
        for descriptor, saved in zip((1, 2), self._saved, strict=True):
            os.dup2(saved, descriptor)
            os.close(saved)
        self._stream.close()
        self._file.close()

    def _redirect(self, file: int) -> None:
        for descriptor in (1, 2, self._stream.fileno()):
            os.dup2(file, descriptor)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr, self._stream):
            stream.flush()


@contextmanager
def captured_output() -> Iterator[OutputCapture]:
    """Captures output while the block runs."""
    capture = OutputCapture()
    try:
        yield capture
    finally:
        capture.close()
