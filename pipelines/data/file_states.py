"""The state of the user's files while they are read: content hashes and times of change."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.data.byte_checks import readable
from pipelines.errors import BadInputError

_AGAIN = "Run again when nothing writes there; give new data a name of their own."


@dataclass(frozen=True)
class FileState:
    """State of a file at one moment.

    Attributes:
      num_bytes: Size of the file.
      times_ns: Times of the last change of its content, and of its inode; the latter reveals a change that
        was reverted.
      sha256: Hash of its content, in hexadecimal digits.
    """

    num_bytes: int
    times_ns: tuple[int, int]
    sha256: str

    @classmethod
    def read(cls, file: Path) -> "FileState":
        """Returns the state of a file, which must not change while its content is hashed.

        Raises:
          BadInputError: It changed, or the file cannot be read.
        """
        with readable(file), file.open("rb") as stream:
            before = _written(os.fstat(stream.fileno()))
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            after = _written(file.stat())
        if before != after:
            raise BadInputError(f"{file} was written while it was read. {_AGAIN}")
        return cls(*before, digest)


def read_states(files: Iterable[Path]) -> dict[Path, FileState]:
    """Returns the states of files.

    Raises:
      BadInputError: One of them cannot be read, or is being written.
    """
    return {file: FileState.read(file) for file in files}


def check_unchanged(states: Mapping[Path, FileState]) -> None:
    """Checks that files have not changed.

    Args:
      states: States that `read_states` returned before the files were examined.

    Raises:
      BadInputError: A file has changed, or is gone.
    """
    for file, before in states.items():
        if not file.is_file():
            raise BadInputError(f"{file} is gone since it was read. {_AGAIN}")
        if FileState.read(file) != before:
            raise BadInputError(f"{file} was changed while the data were looked at. {_AGAIN}")


def _written(status: os.stat_result) -> tuple[int, tuple[int, int]]:
    return status.st_size, (status.st_mtime_ns, status.st_ctime_ns)
