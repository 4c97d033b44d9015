"""The state of the user's files while they are read: content hashes and times of change."""

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.data.byte_checks import readable
from pipelines.errors import BadInputError

_SETTLING_NS = 2_000_000_000  # two changes within one tick of the file system's clock look like one
_AGAIN = "Try again once no other process is writing there; write new data to new files."


@dataclass(frozen=True)
class FileState:
    num_bytes: int  # Size of the file
    # Times of the last change of its content, and of its inode; the latter reveals a change that
    # was reverted.
    times_ns: tuple[int, int]
    sha256: str  # Hash of its content, in hexadecimal digits
    # True if the times were in the past when the file was hashed, so that a later change shows in them.
    is_settled: bool = field(default=False, compare=False)

    @classmethod
    def read(cls, file: Path) -> "FileState":
        """Returns the state of a file, which must not change while its content is hashed."""
        with readable(file), file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return state_of_hashed(file, status, digest)

    def matches(self, file: Path) -> bool:
        """Returns whether a file still has this state; it is hashed only if its times cannot tell."""
        if _written(file.stat()) != (self.num_bytes, self.times_ns):
            return False
        return self.is_settled or FileState.read(file) == self


def state_of_hashed(file: Path, status_before: os.stat_result, sha256: str) -> FileState:
    """Returns the state of a file that was read."""
    if _written(status_before) != _written(file.stat()):
        raise BadInputError(f"{file} was changed while it was being read. {_AGAIN}")
    num_bytes, times_ns = _written(status_before)
    is_settled = time.time_ns() - max(times_ns) > _SETTLING_NS
    return FileState(num_bytes, times_ns, sha256, is_settled)


def read_states(files: Iterable[Path]) -> dict[Path, FileState]:
    return {file: FileState.read(file) for file in files}


def check_unchanged(states: Mapping[Path, FileState]) -> None:
    """Checks that files have not changed."""
    for file, state in states.items():
        if not file.is_file():
            raise BadInputError(f"{file} was deleted after it was read. {_AGAIN}")
        if not state.matches(file):
            raise BadInputError(f"{file} was changed while the data were being read. {_AGAIN}")


def _written(status: os.stat_result) -> tuple[int, tuple[int, int]]:
    return status.st_size, (status.st_mtime_ns, status.st_ctime_ns)
