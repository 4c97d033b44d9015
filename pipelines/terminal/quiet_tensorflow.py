"""Hides TensorFlow's messages at its start from the terminal, which none of its settings does."""

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_LOUD = "0"
_GREETING = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|I\d{4} \d\d:\d\d:\d+\.\d+ +\d+ \S+\.cc:\d+\] "
    rb"|E\d{4} \S+ +\d+ cuda_\w+\.cc:\d+\] failed call to cuInit: "  # there is no GPU
    rb"|E\d{4} \S+ +\d+ util\.cc:\d+\] oneDNN supports DT_\w+ only "
    rb"|To enable the following instructions: "
    rb"|(WARNING:\w+:)?`.*` is not a valid tf\.function parameter name\. Sanitizing to "
)
_HARMLESS = {
    # Requests name the columns as the CSV does, also if a name is not a Python identifier.
    "absl": "is not a valid tf.function parameter name. Sanitizing to",
    # Exports of TensorFlow 1 programs have reference variables, which only training again would need.
    "tensorflow": "Unable to create a python object for variable",
}
"""A text of harmless warnings when a model is loaded or called, by logger."""


@contextmanager
def without_harmless_warnings() -> Iterator[None]:
    """Drops harmless warnings about a loaded model in the block, unless `TF_CPP_MIN_LOG_LEVEL` is 0."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == _LOUD:
        yield
        return
    for name in _HARMLESS:
        logging.getLogger(name).addFilter(_is_not_harmless)
    try:
        yield
    finally:
        for name in _HARMLESS:
            logging.getLogger(name).removeFilter(_is_not_harmless)


def _is_not_harmless(record: logging.LogRecord) -> bool:
    return _HARMLESS[record.name] not in record.getMessage()


@contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Removes the lines of information, and of a missing GPU, that C++ logs to standard error in the block.

    All other lines appear when the block ends. If `TF_CPP_MIN_LOG_LEVEL` is 0, nothing is removed.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == _LOUD:
        yield
        return
    with tempfile.TemporaryFile() as file:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            for line in file:
                if not _GREETING.match(line):
                    os.write(2, line)  # a notebook's sys.stderr takes no bytes
